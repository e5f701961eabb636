"""What does a search of a knowledge base answer, on every store?"""
