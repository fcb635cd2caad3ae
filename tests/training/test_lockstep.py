"""What can be said of the lockstep without a GPU: when it is not used, and why."""

import numpy as np
import pytest
import torch
from torch import nn

from accord.training import lockstep
from accord.training.batches import ImageBatches, TableBatches
from accord.training.lockstep import Entrant, why_not
from accord.training.loop import Recipe
from accord.training.losses import CrossEntropy
from accord.training.spec import OptimizerSpec

CPU = torch.device("cpu")
ONE = {"mean": np.zeros(1, np.float32), "spread": np.ones(1, np.float32)}
IMAGES = ImageBatches(np.zeros((4, 1, 2, 2), np.uint8), device=CPU, **ONE)


class Files:
    def __len__(self):
        return 4

    def read(self, indices):
        return np.zeros((len(indices), 1, 2, 2), np.uint8)


def entrants(*, count=2, network=None, **recipe):
    network = network or nn.Linear(1, 1)
    return [
        Entrant(network, CrossEntropy(), Recipe(**{"epochs": 2, **recipe}), seed)
        for seed in range(count)
    ]


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(lockstep.torch.cuda, "is_available", lambda: True)


def test_without_a_gpu_there_is_no_lockstep(monkeypatch):
    monkeypatch.setattr(lockstep.torch.cuda, "is_available", lambda: False)
    assert why_not(IMAGES, entrants()) == "there is no CUDA device"


def test_images_in_memory_go_in_lockstep(gpu):
    assert why_not(IMAGES, entrants()) is None


@pytest.mark.parametrize(
    ("samples", "given", "reason"),
    [
        (IMAGES, {"count": 1}, "there is one network"),
        (ImageBatches(Files(), device=CPU, **ONE), {}, "the samples are not images in memory"),
        (TableBatches(np.zeros((4, 1), np.float32), device=CPU, **ONE), {}, "not images in memory"),
        (IMAGES, {"optimizer": OptimizerSpec(kind="adamw")}, "an optimizer is not SGD"),
        (IMAGES, {"every": 0.5}, "fractions of an epoch are recorded"),
        (IMAGES, {"network": nn.Sequential(nn.Dropout(0.5))}, "draws random numbers of its own"),
    ],
)
def test_what_cannot_go_in_lockstep_is_told_why(gpu, samples, given, reason):
    assert reason in why_not(samples, entrants(**given))


def test_a_dropout_of_nothing_is_no_obstacle(gpu):
    assert why_not(IMAGES, entrants(network=nn.Sequential(nn.Dropout(0.0)))) is None
