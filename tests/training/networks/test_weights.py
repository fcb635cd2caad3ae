"""Weights in a file go into the network they belong to, and into no other."""

import logging
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from accord.errors import ExtraMissing, SourceError
from accord.training.networks import build, load_weights, warn_once

SIZES = {"channels": 3, "size": 8, "width": 4}


def new_network(*, classes=5, seed=0, **options):
    return build("resnet18", classes=classes, seed=seed, **SIZES | options)


PUBLISHED = new_network(seed=7).state_dict()


@pytest.fixture
def file(tmp_path):
    def write(found, name="weights.pth", **options):
        path = tmp_path / name
        torch.save(found, path, **options)
        return path

    return write


def same(network, state):
    own = network.state_dict()
    return all(torch.equal(own[name], value) for name, value in state.items())


def test_torch_files_of_both_formats_are_read(file):
    new, legacy = (
        file(PUBLISHED, name=f"{zipped}.pth", _use_new_zipfile_serialization=zipped)
        for zipped in (True, False)
    )
    assert same(new_network(pretrained=new), PUBLISHED)
    assert same(new_network(pretrained=legacy), PUBLISHED)


def test_safetensors_files_are_read(tmp_path):
    path = tmp_path / "weights.safetensors"
    save_file({name: value.contiguous() for name, value in PUBLISHED.items()}, path)
    assert same(new_network(pretrained=path), PUBLISHED)


@pytest.mark.parametrize(
    "wrapped",
    [
        {"state_dict": PUBLISHED, "epoch": 3},
        {"model": PUBLISHED},
        {f"module.{name}": value for name, value in PUBLISHED.items()},
        {name: value for name, value in PUBLISHED.items() if "num_batches" not in name},
    ],
)
def test_weights_are_found_as_training_scripts_leave_them(file, wrapped):
    path = file(wrapped)
    assert same(new_network(pretrained=path), PUBLISHED)


def test_first_names_of_densenet_are_understood(file):
    sizes = {"classes": 2, "channels": 3, "size": 8, "growth": 2}
    state = build("densenet121", seed=7, **sizes).state_dict()
    dotted = {
        name.replace("norm1.", "norm.1.").replace("norm2.", "norm.2.").replace("conv2.", "conv.2.")
        if "denselayer" in name
        else name: value
        for name, value in state.items()
    }
    assert dotted.keys() != state.keys()
    assert same(build("densenet121", seed=0, pretrained=file(dotted), **sizes), state)


def test_other_classes_keep_the_initial_last_layer_with_a_warning(file, caplog):
    network = new_network(classes=3, pretrained=file(PUBLISHED))
    body = {name: value for name, value in PUBLISHED.items() if not name.startswith("fc.")}
    assert same(network, body)
    fresh = new_network(classes=3).state_dict()
    assert same(network, {name: fresh[name] for name in ("fc.weight", "fc.bias")})
    ((_, level, message),) = caplog.record_tuples
    assert level == logging.WARNING
    assert "weights.pth has 5 classes, the network 3: its last layer, fc," in message


def test_each_sentence_is_reported_once_within_and_again_after(file, caplog):
    path = file(PUBLISHED)
    with warn_once():
        for classes in (3, 3, 4):
            with warn_once():
                new_network(classes=classes, pretrained=path)
    reported = [message.partition("the network ")[2][0] for message in caplog.messages]
    assert reported == ["3", "4"]
    new_network(classes=3, pretrained=path)
    assert len(caplog.messages) == 3


def test_same_classes_are_loaded_in_silence(file, caplog):
    network = new_network()
    assert load_weights(network, file(PUBLISHED), last_layer="fc") is False
    assert same(network, PUBLISHED)
    assert not caplog.records


def test_a_network_that_fails_to_load_is_left_as_it_was(file):
    network = new_network(classes=3)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    state = PUBLISHED | {"layer4.1.bn2.bias": torch.ones(3)}
    with pytest.raises(SourceError, match=r"it holds layer4\.1\.bn2\.bias \(3,\) where"):
        load_weights(network, file(state), last_layer="fc")
    assert same(network, before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda state: state.pop("bn1.bias"),
            r"it lacks bn1\.bias\. Are these the weights of",
        ),
        (lambda state: state.update(bias=torch.ones(1)), r"it holds unknown bias\. Are"),
        (
            lambda state: state.update({"conv1.weight": torch.ones(4, 3, 7, 7)}),
            r"it holds conv1\.weight \(4, 3, 7, 7\) where the network has \(4, 3, 3, 3\)\.",
        ),
        (
            lambda state: state.update({"fc.weight": torch.ones(5, 31)}),
            r"it holds fc\.weight \(5, 31\) where the network has \(5, 32\)\.",
        ),
        (
            lambda state: [state.pop(name) for name in list(state) if "layer1" in name],
            r"it lacks layer1\.0\.conv1\.weight, layer1\S+, layer1\S+ and 17 more\.",
        ),
        (
            lambda state: state.update({"head.weight": state.pop("fc.weight")}),
            r"it lacks fc\.weight; it holds unknown head\.weight\.",
        ),
    ],
)
def test_weights_of_another_network_are_refused_by_name(file, change, message):
    state = dict(PUBLISHED)
    change(state)
    with pytest.raises(SourceError, match=r"weights\.pth: does not fit the network: " + message):
        new_network(pretrained=file(state))


def test_other_features_are_not_taken_for_other_classes(file):
    state = PUBLISHED | {"fc.weight": torch.ones(9, 31), "fc.bias": torch.ones(9)}
    with pytest.raises(SourceError, match=r"fc\.weight \(9, 31\) where the network has \(5, 32\)"):
        new_network(pretrained=file(state))


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_pickle_that_would_run_code_is_refused_and_not_run(file, tmp_path):
    path = file({"weights": Bomb(tmp_path / "ran")})
    with pytest.raises(SourceError, match=r"weights\.pth: .*pickle that could run code is never"):
        new_network(pretrained=path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("found", [[torch.ones(2)], {"a": 3}, torch.ones(2)])
def test_files_that_hold_no_weights_by_name_are_refused(file, found):
    with pytest.raises(SourceError, match=r"weights\.pth: must hold tensors by name"):
        new_network(pretrained=file(found))


@pytest.mark.parametrize("name", ["weights.pth", "weights.safetensors"])
@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x80\x02}", None])
def test_files_that_cannot_be_read_are_named(tmp_path, name, content):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=rf"{name}: (cannot be read|holds more than weights)"):
        new_network(pretrained=tmp_path / name)


def test_damaged_file_is_named(file):
    path = file(PUBLISHED)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(SourceError, match=r"weights\.pth: cannot be read as weights"):
        new_network(pretrained=path)


def test_missing_safetensors_is_reported(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "safetensors", None)
    with pytest.raises(ExtraMissing, match=r"weights\.safetensors: .*pip install 'accord\[train\]"):
        new_network(pretrained=tmp_path / "weights.safetensors")
