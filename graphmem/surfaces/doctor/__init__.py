"""Whether an installation is well: what it is, where its files lie, who uses it, and a trip through each surface."""
