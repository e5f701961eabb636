"""How is one organisation kept in one SQLite file?"""
