import pytest

from accord.cli.app import run


@pytest.fixture
def accord(capsys):
    """Run one command; return its exit status, standard output and standard error."""

    def call(*arguments):
        status = run([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call
