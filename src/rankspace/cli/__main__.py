"""``python -m rankspace.cli``: the same as the command ``rankspace``."""

import sys

from .main import main

if __name__ == "__main__":
    sys.exit(main())
