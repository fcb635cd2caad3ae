import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for a busy core make boosting ten times slower."""
    with threadpool_limits(1):
        yield
