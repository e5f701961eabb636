"""How are things kept in dictionaries, and in one JSON file?"""
