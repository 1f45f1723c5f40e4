"""Connections, schema and copies: the only place that knows it is SQLite."""
