"""Networks, losses and recipes are built from a spec, and checked beforehand."""

import random

import numpy as np
import pytest
import torch
from small_run import SMALL_CNN, changed, labels_of, train_text
from torch import nn

from accord.errors import ChoiceError
from accord.training import Run, _build_networks, network_specs, parse_spec
from accord.training._build_networks import build_network, check_logits
from accord.training._prepared_data import prepare_data
from accord.training.networks import to_batch_ensemble


def test_what_follows_from_the_data_is_not_an_option(tmp_path):
    for requested, words in (
        (
            (SMALL_CNN, f"{SMALL_CNN[:-2]}, classes = 2 }}"),
            "small-cnn: classes follows from the data",
        ),
        (
            (SMALL_CNN, f'{SMALL_CNN}\nloss = {{ kind = "elr", samples = 3 }}'),
            "elr: samples follows",
        ),
    ):
        with pytest.raises(ChoiceError, match=words):
            train_text(tmp_path / "run", changed(requested))
        assert not (tmp_path / "run").exists()


def test_each_architecture_is_checked_once_and_not_when_resuming(whole, monkeypatch):
    built = []
    monkeypatch.setattr(_build_networks, "build_network", lambda *given: built.append(given))
    spec = parse_spec(changed(("networks = 2", 'networks = [{}, {}, { network = "mlp" }]')))
    _build_networks.check_networks(spec, prepare_data(spec))
    assert [network_spec.number for _, network_spec, _ in built] == [0, 2]
    assert train_text(whole).failed == {}
    assert len(built) == 2


@pytest.mark.parametrize("members", ["", "\nbatch_ensemble = 2"])
def test_user_code_with_a_wrong_output_leaves_no_folder(tmp_path, own, members):
    text = changed((SMALL_CNN, f'network = "own_of_a_run:net"\noptions = {{ more = 1 }}{members}'))
    stderr = r"own_of_a_run:net must return .* of 10 classes; got a tensor of shape \((2|4), 11\)"
    with pytest.raises(ChoiceError, match=stderr):
        train_text(tmp_path / "run", text)
    assert not (tmp_path / "run").exists()


def test_checking_user_code_does_not_change_its_training(tmp_path, own, monkeypatch):
    text = changed((SMALL_CNN, 'network = "own_of_a_run:net"'), ("epochs = 4", "epochs = 1"))
    train_text(tmp_path / "tried", text)
    monkeypatch.setattr(_build_networks, "check_logits", lambda *_, **__: None)
    train_text(tmp_path / "untried", text)
    np.testing.assert_array_equal(labels_of(tmp_path / "tried"), labels_of(tmp_path / "untried"))


def test_paths_of_a_spec_are_relative_to_its_root(tmp_path, monkeypatch):
    np.save(tmp_path / "noisy.npy", np.arange(200) % 10)
    noise = ('kind = "symmetric"\nrate = 0.4', 'kind = "file"\npath = "noisy.npy"')
    rooted = parse_spec(f'root = "{tmp_path}"\n' + changed(noise))
    material = prepare_data(rooted)
    np.testing.assert_array_equal(material.splits["train"].labels, np.arange(200) % 10)

    (tmp_path / "tiny").mkdir()
    train = {"pretrained": "weights.safetensors", "network": "transformers:tiny"}
    spec = rooted.model_copy(update={"train": rooted.train.model_copy(update=train)})
    requested = []
    monkeypatch.setattr(
        _build_networks, "build", lambda name, **facts: requested.append((name, facts))
    )
    (network_spec, _) = network_specs(spec)
    _build_networks.build_network(spec, network_spec, material)
    tiny = f"transformers:{tmp_path / 'tiny'}"
    assert [(name, facts["pretrained"]) for name, facts in requested] == [
        (tiny, tmp_path / "weights.safetensors")
    ]
    monkeypatch.setattr(
        "accord.training._prepared_data.make_batches", lambda *_, **facts: facts["network"]
    )
    assert Run(tmp_path / "run", spec).batches("train", network_spec) == tiny


def test_members_and_weights_of_a_batch_ensemble_are_drawn_independently():
    text = changed(
        (SMALL_CNN, 'network = "mlp"\noptions = { widths = [64] }\nbatch_ensemble = 4'),
        ("networks = 2", "networks = 1"),
    )
    spec = parse_spec(text)
    network = build_network(spec, network_specs(spec)[0], prepare_data(spec))
    owned = network.state_dict()
    (first,) = [one for name, one in owned.items() if name.endswith("hidden.0.weight")]
    for name, vector in owned.items():
        if name.endswith(".r"):
            count = min(first.numel(), vector.numel())
            pair = torch.stack([first.flatten()[:count], vector.flatten()[:count]])
            assert abs(torch.corrcoef(pair)[0, 1]) < 0.2


BATCH = torch.rand(2, 3)
EXPECTED = r"the network mine:net must return one logit for each sample and class, .*\(2, 10\)"


class Changed(nn.Module):
    """A network that returns its logits changed."""

    def __init__(self, change, *, classes=10):
        super().__init__()
        self.layer = nn.Linear(3, classes)
        self.change = change

    def forward(self, samples):
        return self.change(self.layer(samples))


@pytest.mark.parametrize(
    ("change", "classes", "got"),
    [
        (lambda logits: logits, 7, r"got a tensor of shape \(2, 7\)\. Does its last layer have"),
        (lambda logits: logits.argmax(dim=1), 10, r"got a tensor of shape \(2,\)\. .*no argmax"),
        (lambda logits: logits[:, None], 10, r"got a tensor of shape \(2, 1, 10\)"),
        (lambda logits: (logits, logits), 10, r"got a tuple\. Return the logits alone"),
        (lambda logits: {"logits": logits}, 10, r"got a dict\. Return the logits alone"),
        (lambda _: None, 10, r"got a NoneType\."),
    ],
)
def test_a_wrong_output_is_reported_with_the_expected_shape(change, classes, got):
    with pytest.raises(ChoiceError, match=f"{EXPECTED}.*{got}"):
        check_logits(Changed(change, classes=classes), BATCH, name="mine:net", classes=10)


def test_members_of_a_batch_ensemble_are_checked_like_a_network():
    right, wrong = (
        to_batch_ensemble(Changed(change), members=4, seed=0)
        for change in (lambda logits: logits, lambda logits: (logits,))
    )
    check_logits(right, BATCH, name="mine:net", classes=10)
    with pytest.raises(ChoiceError, match=r"\(8, 10\) for 8 samples of 10 classes; got a tuple"):
        check_logits(wrong, BATCH, name="mine:net", classes=10)


def test_the_check_leaves_weights_modes_and_random_states_unchanged():
    def add_noise(logits):
        noise = torch.rand(()) + random.random() + np.random.rand()  # noqa: NPY002
        return logits * noise

    network = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(), Changed(add_noise))
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
