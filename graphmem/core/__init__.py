"""Pure functions and frozen values: no SQLite, no files, no clock."""
