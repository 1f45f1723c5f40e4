"""How other programs write down what was said, one module a program. See `graphmem.exchange.transcripts`."""
