"""How is text shaped?"""
