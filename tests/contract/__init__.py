"""Does every implementation of a protocol keep its promises?"""
