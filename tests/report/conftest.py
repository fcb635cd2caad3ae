import erring_records
import pytest


@pytest.fixture(scope="session")
def make_record():
    return erring_records.make_record


@pytest.fixture(scope="session")
def record():
    """Three networks, eight epochs, four classes, with probabilities."""
    return erring_records.make_record(3, 8, 120, 4, probabilities=True)
