"""Fixtures of small records, for tests of analysis and reports."""

import erring_records
import pytest
from hard_records import make_hard_record


@pytest.fixture(scope="session")
def make_record():
    return erring_records.make_record


@pytest.fixture(scope="session")
def make_hard():
    return make_hard_record


@pytest.fixture(scope="session")
def record():
    """Three networks, eight epochs, four classes, with probabilities."""
    return erring_records.make_record(3, 8, 120, 4, probabilities=True)


@pytest.fixture(scope="session")
def hard():
    """Five networks, twelve epochs, a thousand samples, four classes."""
    return make_hard_record()
