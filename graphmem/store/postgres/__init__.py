"""A memory as a tenant of a PostgreSQL server: a schema of its own, with a role that may use nothing else."""
