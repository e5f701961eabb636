"""Hits → hits: which of the few that are left is best, on a second look?"""
