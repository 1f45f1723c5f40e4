"""What OpenCode gets of graphmem: plug-ins for both of its loaders, commands, and an MCP server in its settings."""
