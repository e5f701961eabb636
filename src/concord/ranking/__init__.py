"""How are results ordered, and how far can each be trusted?"""
