"""How does text become vectors?"""
