"""How fast is it, and how good, beside what it is made of?"""
