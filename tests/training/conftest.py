import sys

import pytest
from one_thread import one_thread  # noqa: F401 -- for every test here
from small_run import train_text


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """The folder of a finished run, which tests must not change."""
    out = tmp_path_factory.mktemp("run") / "whole"
    assert train_text(out).failed == {}
    return out


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module with a network, as a user writes one, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "own_of_a_run.py").write_text(
        "from torch import nn\n"
        "def net(classes, channels, size, *, more=0):\n"
        "    inputs = channels * size[0] * size[1]\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, classes + more))\n"
    )
    yield
    sys.modules.pop("own_of_a_run", None)
