"""Whatever is listed can be trained: each network of each target takes one step."""

import json

import pytest
import torch

from accord.errors import ChoiceError
from accord.experiments.paper import SCALES, all_targets, build_spec
from accord.training._losses import build_loss
from accord.training.networks import build, to_batch_ensemble
from accord.training.spec import network_specs


def distinct_members():
    """Return each way to make and train a network that some target at some scale asks for."""
    found = {}
    for target in all_targets().values():
        for cell in target.cells.values():
            for scale in SCALES:
                try:
                    members = network_specs(build_spec(cell, scale))
                except ChoiceError:  # there is no such scale
                    continue
                for member in members:
                    asked = member.model_dump(
                        mode="json", exclude={"number", "seed", "schedule", "optimizer"}
                    )
                    found[json.dumps(asked, sort_keys=True)] = member
    return [one for one in found.values() if not one.network.startswith("transformers:")]


@pytest.mark.parametrize("member", distinct_members(), ids=lambda one: one.network)
def test_every_network_takes_a_step(member):
    channels, size = (1, 8) if member.network in ("small-cnn", "mlp") else (3, 32)
    network = build(
        member.network, classes=10, channels=channels, size=(size, size), seed=0, **member.options
    )
    if not getattr(network, "trainable", True):
        assert network(torch.zeros(2, channels, size, size)).shape == (2, 10)
        return
    if member.members > 1:
        network = to_batch_ensemble(network, members=member.members, seed=0)
    loss = build_loss(member.loss.kind, samples=2, classes=10, **member.loss.options)
    logits = network(torch.randn(2, channels, size, size))
    assert logits.shape == ((member.members,) if member.members > 1 else ()) + (2, 10)
    rows = logits if member.members == 1 else logits[0]
    value = loss(rows, torch.tensor([0, 1]), torch.tensor([0, 1]))
    value.backward()
    assert all(one.grad is not None for one in network.parameters() if one.requires_grad)
