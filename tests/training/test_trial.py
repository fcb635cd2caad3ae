"""A network of one's own that answers with something else than logits is refused in time."""

import random

import numpy as np
import pytest
import torch
from torch import nn

from accord.errors import ChoiceError
from accord.training._build import check_logits
from accord.training.networks import to_batch_ensemble

BATCH = torch.rand(2, 3)
WANTED = r"the network mine:net must return one logit for each sample and class, .*\(2, 10\)"


class Answering(nn.Module):
    """Answers with whatever is made of its logits."""

    def __init__(self, change, *, classes=10):
        super().__init__()
        self.layer = nn.Linear(3, classes)
        self.change = change

    def forward(self, samples):
        return self.change(self.layer(samples))


@pytest.mark.parametrize(
    ("change", "classes", "came"),
    [
        (lambda logits: logits, 7, r"got a tensor of shape \(2, 7\)\. Does its last layer have"),
        (lambda logits: logits.argmax(dim=1), 10, r"got a tensor of shape \(2,\)\. .*no argmax"),
        (lambda logits: logits[:, None], 10, r"got a tensor of shape \(2, 1, 10\)"),
        (lambda logits: (logits, logits), 10, r"got a tuple\. Return the logits alone"),
        (lambda logits: {"logits": logits}, 10, r"got a dict\. Return the logits alone"),
        (lambda _: None, 10, r"got a NoneType\."),
    ],
)
def test_a_wrong_answer_is_told_with_what_was_wanted(change, classes, came):
    with pytest.raises(ChoiceError, match=f"{WANTED}.*{came}"):
        check_logits(Answering(change, classes=classes), BATCH, name="mine:net", classes=10)


def test_members_of_a_batch_ensemble_must_answer_as_a_network_does():
    right, wrong = (
        to_batch_ensemble(Answering(change), members=4, seed=0)
        for change in (lambda logits: logits, lambda logits: (logits,))
    )
    check_logits(right, BATCH, name="mine:net", classes=10)
    with pytest.raises(ChoiceError, match=r"\(8, 10\) for 8 samples of 10 classes; got a tuple"):
        check_logits(wrong, BATCH, name="mine:net", classes=10)


def test_a_trial_leaves_no_trace():
    def throw_dice(logits):
        dice = torch.rand(()) + random.random() + np.random.rand()  # noqa: NPY002
        return logits * dice

    network = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(), Answering(throw_dice))
    network[1].eval()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    check_logits(network, BATCH, name="mine:net", classes=10)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert [module.training for module in network] == [True, False, True]
    assert network[2].layer.weight.grad is None
    assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]
    np.testing.assert_array_equal(np.random.get_state()[1], states[2])  # noqa: NPY002
