"""`python -m graphmem` is the command line."""

from graphmem.surfaces.cli import main

if __name__ == "__main__":
    main()
