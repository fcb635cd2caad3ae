import pytest
from one_thread import one_thread  # noqa: F401 -- for every test here

from accord.experiments.comparison._runs import train_here
from accord.experiments.paper._protocols import protocols
from accord.experiments.paper._required_runs import ReproduceContext

SMALL = {
    "networks": 3,
    "network": "mlp",
    "epochs": 4,
    "batch": 64,
    "optimizer": {"lr": 0.1, "momentum": 0.9},
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Train stand-ins in a second."""
    monkeypatch.setitem(protocols()["scale"]["stand-in"], "train", SMALL)


class Trainer:
    """Trains here, and counts."""

    def __init__(self):
        self.trained = []

    def __call__(self, spec, out, progress):
        self.trained.append(out.name)
        return train_here(spec, out, progress)


@pytest.fixture
def trainer():
    return Trainer()


@pytest.fixture
def workshop(tmp_path, trainer):
    return ReproduceContext(tmp_path / "out", tmp_path / "data", trainer)
