from pathlib import Path

import numpy as np
import pytest
from one_thread import one_thread  # noqa: F401 -- for every test here

from accord.experiments.paper._protocols import protocols
from accord.experiments.paper._required_runs import ReproduceContext
from accord.training import train

SMALL = {
    "networks": 3,
    "network": "mlp",
    "epochs": 4,
    "batch": 64,
    "optimizer": {"lr": 0.1, "momentum": 0.9},
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Train stand-ins within a second."""
    monkeypatch.setitem(protocols()["scale"]["stand-in"], "train", SMALL)


class Trainer:
    """A trainer that lists the runs it trained."""

    def __init__(self):
        self.trained = []

    def __call__(self, spec, out, progress):
        self.trained.append(out.name)
        return train(spec, out, progress=progress)


@pytest.fixture
def trainer():
    return Trainer()


@pytest.fixture
def context(tmp_path, trainer):
    return ReproduceContext(tmp_path / "out", tmp_path / "data", trainer)


TINY = {"networks": 2, "network": "mlp", "epochs": 2, "batch": 16, "optimizer": {"lr": 0.01}}


@pytest.fixture
def spellings(tmp_path, monkeypatch):
    """Write a small CIFAR-10; return three paths to the folder that contains it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(protocols()["scale"]["quick"], "train", TINY)
    monkeypatch.setitem(
        protocols()["data"]["cifar10"], "read", {"kind": "cifar10", "complete": False}
    )
    folder = tmp_path / "data/cifar-10-batches-bin"
    folder.mkdir(parents=True)
    generator = np.random.default_rng(0)
    for name in [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]:
        rows = generator.integers(0, 256, (20, 3073)).astype(np.uint8)
        rows[:, 0] = np.arange(20) % 10
        rows.tofile(folder / f"{name}.bin")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    return [tmp_path / "data", tmp_path / "link", Path("data")]
