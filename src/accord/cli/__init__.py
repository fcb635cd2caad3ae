"""The command line: parse, call one function, print."""

import sys


def main() -> None:
    """Run the `accord` command and leave with its exit status."""
    from accord.cli.app import run

    sys.exit(run(sys.argv[1:]))
