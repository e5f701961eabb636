"""How good are the answers, and is their confidence true?"""
