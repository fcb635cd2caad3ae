import pytest
from one_thread import one_thread  # noqa: F401 -- for every test here
from small_run import train_text


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """The folder of a finished run, which tests must not change."""
    out = tmp_path_factory.mktemp("run") / "whole"
    assert train_text(out).failed == {}
    return out
