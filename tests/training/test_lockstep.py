"""When the lockstep is used and compiled, tested without a GPU."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch._dynamo.exc import InternalTorchDynamoError

from accord.errors import ChoiceError, NotCapturable
from accord.training import _lockstep as lockstep
from accord.training._batches import ImageBatches, TableBatches, TextBatches
from accord.training._checkpoints import State
from accord.training._lockstep import LockstepNetwork, compute_loss, lockstep_obstacle
from accord.training._loop import Recipe
from accord.training._losses import CrossEntropy
from accord.training._randomness import draw_epoch
from accord.training.networks.batch_ensemble import to_batch_ensemble

CPU = torch.device("cpu")
ONE = {"mean": np.zeros(1, np.float32), "spread": np.ones(1, np.float32)}
IMAGES = ImageBatches(np.zeros((4, 1, 2, 2), np.uint8), device=CPU, **ONE)
ROWS = TableBatches(np.zeros((4, 1), np.float32), device=CPU, **ONE)


class Files:
    def __len__(self):
        return 4

    def read(self, indices):
        return np.zeros((len(indices), 1, 2, 2), np.uint8)


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(lockstep.torch.cuda, "is_available", lambda: True)


def test_without_a_gpu_there_is_no_lockstep(monkeypatch):
    monkeypatch.setattr(lockstep.torch.cuda, "is_available", lambda: False)
    assert lockstep_obstacle(IMAGES) == "no CUDA device is available"


@pytest.mark.parametrize("samples", [IMAGES, ROWS])
def test_images_and_rows_in_memory_go_in_lockstep(gpu, samples):
    assert lockstep_obstacle(samples) is None


@pytest.mark.parametrize(
    "samples",
    [
        ImageBatches(Files(), device=CPU, **ONE),
        TextBatches(np.zeros((4, 2, 3), np.int32), device=CPU),
    ],
)
def test_samples_on_disk_and_texts_are_not_trained_in_lockstep(gpu, samples):
    assert lockstep_obstacle(samples) == "the samples are not images or tables in memory"


pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")  # its compiler


def choose(*, steps=100, state=None, members=0):
    network = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU(), nn.Linear(1, 1)))
    network = to_batch_ensemble(network, members=members, seed=0) if members else network
    some = [LockstepNetwork(network, CrossEntropy(), Recipe(epochs=10), 0, state) for _ in range(3)]
    return lockstep._choose_compute(some, steps)


def test_a_run_is_compiled_if_it_is_long_enough_to_pay(monkeypatch):
    monkeypatch.delenv("ACCORD_COMPILE", raising=False)
    assert choose(steps=99) is compute_loss  # 3 networks × 10 epochs × 99 < 1500 × 2 layers
    assert choose(steps=100) is not compute_loss
    begun = State(epochs=1, weights={}, optimizer={}, loss={})
    assert choose(steps=100, state=begun) is compute_loss


def test_each_member_of_a_batch_ensemble_counts_when_compiling_is_to_pay(monkeypatch):
    monkeypatch.delenv("ACCORD_COMPILE", raising=False)
    assert choose(steps=24, members=4) is compute_loss  # 4 members × 3 × 10 × 24 < 1500 × 2
    assert choose(steps=25, members=4) is not compute_loss


def test_the_environment_sets_whether_to_compile(monkeypatch):
    monkeypatch.setenv("ACCORD_COMPILE", "never")
    assert choose(steps=10**6) is compute_loss
    monkeypatch.setenv("ACCORD_COMPILE", "always")
    assert choose(steps=1) is not compute_loss
    monkeypatch.setenv("ACCORD_COMPILE", "yes")
    with pytest.raises(ChoiceError, match="ACCORD_COMPILE must be auto, always or never; got 'yes"):
        choose()


def test_a_failing_compiler_is_logged_and_not_used(monkeypatch, caplog):
    def fail(*_):
        raise InternalTorchDynamoError("no compiler\nand more")

    monkeypatch.setattr(lockstep.torch, "compile", lambda *_, **__: fail)
    monkeypatch.setenv("ACCORD_COMPILE", "always")
    compute = choose()
    draws = draw_epoch(4, seed=0, epoch=0)
    given = (nn.Flatten(), CrossEntropy(), IMAGES, draws, torch.tensor([0, 1, 2, 3]), draws.order)
    assert [compute(*given).item() for _ in range(2)] == pytest.approx([math.log(4)] * 2)
    assert caplog.messages == ["training continues without compilation: no compiler"]


def test_what_a_graph_cannot_hold_is_named_and_lack_of_memory_is_not():
    named = r"captured in a CUDA graph \(operation not permitted\)"
    with pytest.raises(NotCapturable, match=named), lockstep._explain_capture_error():
        raise RuntimeError("operation not permitted\nat line 3")
    with pytest.raises(torch.OutOfMemoryError), lockstep._explain_capture_error():
        raise torch.OutOfMemoryError("full")
