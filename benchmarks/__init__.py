"""How fast and how good is it, beside what it is compared with?"""
