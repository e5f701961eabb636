"""How do files and notes get into the store, and stay current there?"""
