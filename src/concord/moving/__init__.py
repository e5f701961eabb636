"""How does a knowledge base, or a part of it, get to another store, another server or into a file?"""
