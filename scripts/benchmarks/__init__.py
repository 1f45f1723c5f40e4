"""The benchmarks of graphmem, one module a subject; `scripts/bench.py` runs them."""
