"""What keeps a knowledge base well: its health, its models, its copies."""
