import pytest
import torch
from torch import nn

from accord.errors import SourceError
from accord.training import OptimizerSpec
from accord.training._checkpoints import (
    STATE,
    capture_state,
    checkpoints_in,
    load_checkpoint,
    load_state,
    restore,
    save_checkpoint,
    save_state,
)
from accord.training._loop import build_optimizer
from accord.training._losses import EarlyLearningRegularization


def trained(kind, *, steps):
    """A network, its optimizer and its loss after some steps."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    loss = EarlyLearningRegularization(samples=6, classes=3)
    optimizer = build_optimizer(network, OptimizerSpec(kind=kind, lr=0.1))
    walk(network, optimizer, loss, steps=steps)
    return network, optimizer, loss


def walk(network, optimizer, loss, *, steps):
    inputs = torch.linspace(-1, 1, 24).reshape(6, 4)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(network(inputs), torch.arange(6) % 3, torch.arange(6)).backward()
        optimizer.step()


def weights_of(network):
    return torch.cat([value.flatten().float() for value in network.state_dict().values()])


@pytest.mark.parametrize("kind", ["sgd", "adamw"])
def test_a_state_comes_back_from_the_disk_with_nothing_lost(tmp_path, kind):
    network, optimizer, loss = trained(kind, steps=3)
    save_state(tmp_path, capture_state(3, network, optimizer, loss))
    state = load_state(tmp_path)
    assert state.epochs == 3
    others = trained(kind, steps=1)
    restore(state, *others)
    assert torch.equal(others[2].q, loss.q)
    for some in ((network, optimizer, loss), others):
        walk(*some, steps=2)
    assert torch.equal(weights_of(others[0]), weights_of(network))


def test_there_is_no_state_at_first(tmp_path):
    assert load_state(tmp_path) is None
    assert checkpoints_in(tmp_path) == {}


def test_checkpoints_are_found_by_epoch_and_hold_the_weights(tmp_path):
    network, *_ = trained("sgd", steps=1)
    for epoch in (10, 2):
        save_checkpoint(tmp_path, epoch, network)
    found = checkpoints_in(tmp_path)
    assert list(found) == [2, 10]
    weights = load_checkpoint(found[10])
    assert all(torch.equal(weights[name], value) for name, value in network.state_dict().items())


@pytest.mark.parametrize("damage", [b"", b"short", b"\xff" * 100])
def test_a_damaged_state_is_named_with_a_remedy(tmp_path, damage):
    (tmp_path / STATE).write_bytes(damage)
    with pytest.raises(SourceError, match=r"state\.safetensors: cannot be read.*from the start"):
        load_state(tmp_path)


def test_a_state_replaces_the_one_before_whole(tmp_path):
    for epochs in (1, 2):
        save_state(tmp_path, capture_state(epochs, *trained("sgd", steps=epochs)))
    assert load_state(tmp_path).epochs == 2
    assert [file.name for file in tmp_path.iterdir()] == [STATE]
