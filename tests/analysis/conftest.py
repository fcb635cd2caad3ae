import pytest
from record_fixtures import hard, make_hard, make_record, record  # noqa: F401 -- fixtures

from accord.store import ArrayReader


@pytest.fixture
def epochs_read(monkeypatch):
    """The epochs that were read from arrays, in the order of reading."""
    found, read = [], ArrayReader.read

    def remember(self, array, networks, epochs, samples):
        found.extend(epochs)
        return read(self, array, networks, epochs, samples)

    monkeypatch.setattr(ArrayReader, "read", remember)
    return found
