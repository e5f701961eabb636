"""How are things kept in PostgreSQL?"""
