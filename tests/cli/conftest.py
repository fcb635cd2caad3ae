import pytest

from accord.cli.app import run


@pytest.fixture
def accord(capsys):
    """Run one command; return its exit status, what it printed and what it said."""

    def call(*arguments):
        status = run([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call
