import pytest
from recorded import labels_of, write_record

from accord.cli.app import run


@pytest.fixture
def accord(capsys):
    """Run one command; return its exit status, standard output and standard error."""

    def call(*arguments):
        status = run([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


@pytest.fixture
def record(tmp_path):
    return str(write_record(tmp_path / "record", networks=3, epochs=4, truth=labels_of(9, 9)))
