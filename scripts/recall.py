"""Run a benchmark that opens memories without settings under those of GRAPHMEM_* variables.

GRAPHMEM_SEMANTIC=true python scripts/recall.py ../shared/bench/recallbench.py locomo memdaily madial
"""

import functools
import runpy
import sys

from graphmem import Config, Memory

Memory.open = functools.partial(Memory.open, config=Config.load())
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
