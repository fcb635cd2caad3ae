import pytest
from memorised import IDS, NAMES, memorised_rows

from accord.analysis import audit


@pytest.fixture(scope="module")
def record():
    return memorised_rows(ids=IDS, class_names=NAMES)


@pytest.fixture(scope="module")
def found(record):
    return audit(record)
