"""How a program or a person asks over HTTP: a JSON API, MCP and a page, in one guarded application."""
