"""Work across graph and records: search, the brief, the turn."""
