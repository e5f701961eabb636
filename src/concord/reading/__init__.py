"""What does a citation say, and how much of it is sent?"""
