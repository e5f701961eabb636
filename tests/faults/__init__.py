"""Is nothing lost, whatever goes wrong, and does the next sync complete the work?"""
