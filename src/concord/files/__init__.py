"""Which files are ours to read, and what has become of them?"""
