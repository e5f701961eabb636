"""What does a second look at the first results change?"""
