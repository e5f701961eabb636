"""Which chunks might answer the query?"""
