"""How do AI tools ask?"""
