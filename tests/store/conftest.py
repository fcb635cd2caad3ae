import pytest
from recorded import labels_of, write_record


@pytest.fixture
def path(tmp_path):
    return tmp_path / "record"


@pytest.fixture
def record(path):
    return write_record(path, truth=labels_of(9, 9))
