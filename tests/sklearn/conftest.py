import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True)
def one_thread():
    """Use one thread: waiting threads make boosting ten times slower on busy cores."""
    with threadpool_limits(1):
        yield
