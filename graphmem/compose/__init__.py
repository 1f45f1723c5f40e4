"""Work across graph and records: the turn of an agent, and what goes into its prompt."""
