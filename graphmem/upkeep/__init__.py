"""Keeping the memory in order: plan from a read, then apply."""
