"""``python -m binfeat``: kernel models from the command line."""

import sys

from binfeat.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
