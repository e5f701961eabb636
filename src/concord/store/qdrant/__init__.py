"""How are vectors kept in Qdrant?"""
