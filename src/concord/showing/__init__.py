"""How much of what was found is sent, and is it safe to look at? For all faces."""
