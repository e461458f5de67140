"""``python -m rankspace.cli``: the same as the command ``rankspace``."""

import sys

from .main import main

sys.exit(main())
