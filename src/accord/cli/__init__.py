"""The `accord` command."""

import gc
import sys


def main() -> None:
    """Run the `accord` command and exit with its status."""
    gc.set_threshold(100_000)  # imports make many objects and no garbage: 5 % of a short command
    from accord.cli.app import run

    sys.exit(run(sys.argv[1:]))
