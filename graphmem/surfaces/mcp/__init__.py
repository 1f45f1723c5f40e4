"""The Model Context Protocol: what a model is offered of a memory, and the server that offers it."""
