"""The `accord` command."""

import sys


def main() -> None:
    """Run the `accord` command and exit with its status."""
    from accord.cli.app import run

    sys.exit(run(sys.argv[1:]))
