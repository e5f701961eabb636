"""One process that works for all clients of one user and configuration."""
