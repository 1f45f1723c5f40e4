"""Ways in: they parse, call Memory and render."""
