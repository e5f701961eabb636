"""Which text does this file hold?"""
