"""Networks of timm, of transformers and of the user are built like our own."""

import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from accord.errors import ChoiceError, ExtraMissing, PredictionError
from accord.training.networks import build

SIZES = {"classes": 4, "channels": 3, "size": 8, "seed": 0}


# A stand-in for timm: the four names that are used, as timm documents them.


class Timm:
    calls = ()  # each test has its own list

    @staticmethod
    def is_model(name):
        return name == "tiny"

    @staticmethod
    def list_models():
        return ["tiny", "huge"]

    @classmethod
    def create_model(cls, name, *, pretrained, num_classes, in_chans, **options):
        cls.calls.append((name, pretrained, options))
        network = nn.Sequential(nn.Flatten(), nn.Linear(in_chans * 64, num_classes))
        network.default_cfg = {"classifier": "1"}
        return network


@pytest.fixture
def timm(monkeypatch):
    monkeypatch.setattr(Timm, "calls", [])
    monkeypatch.setitem(sys.modules, "timm", Timm)
    return Timm


def test_timm_network_gets_classes_channels_and_options(timm):
    network = build("timm:tiny", **SIZES, drop_rate=0.1)
    assert network(torch.rand(2, 3, 8, 8)).shape == (2, 4)
    assert timm.calls == [("tiny", False, {"drop_rate": 0.1})]


def test_timm_network_follows_from_the_seed(timm):
    first, again, other = (build("timm:tiny", **SIZES | {"seed": seed}) for seed in (1, 1, 2))
    assert torch.equal(first[1].weight, again[1].weight)
    assert not torch.equal(first[1].weight, other[1].weight)


def test_timm_network_starts_from_a_file_with_its_own_last_layer(timm, tmp_path, caplog):
    state = build("timm:tiny", **SIZES | {"classes": 9}).state_dict()
    torch.save(state, tmp_path / "tiny.pth")
    build("timm:tiny", **SIZES, pretrained=tmp_path / "tiny.pth")
    assert "has 9 classes, the network 4: its last layer, 1, keeps its" in caplog.text


def test_unknown_timm_network_is_refused_with_the_nearest(timm):
    with pytest.raises(ChoiceError, match=r"timm has no network 'tinny'\. Did you mean 'tiny'\?"):
        build("timm:tinny", **SIZES)


@pytest.mark.parametrize("library", ["timm", "transformers"])
def test_a_missing_library_is_reported_with_its_extra(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ExtraMissing, match=f"{library}:tiny requires {library}.*pip install"):
        build(f"{library}:tiny", **SIZES)


# A stand-in for transformers.


class Reader(nn.Module):
    def __init__(self, facts, seen):
        super().__init__()
        self.head = nn.Linear(1, facts.num_labels).half()
        self.seen = seen

    def forward(self, **inputs):
        self.seen.append(inputs)
        first = next(iter(inputs.values())).flatten(1).float().mean(dim=1, keepdim=True)
        return SimpleNamespace(logits=self.head(first), hidden_states=None)


def stand_in(seen):
    class AutoConfig:
        @staticmethod
        def from_pretrained(path, *, num_labels):
            if path != "tiny":
                raise OSError(f"{path} is not a local folder")
            return SimpleNamespace(num_labels=num_labels, pad_token_id=9)

    class AutoModelForSequenceClassification:
        @staticmethod
        def from_pretrained(path, *, config, ignore_mismatched_sizes):
            assert ignore_mismatched_sizes
            return Reader(config, seen).eval()

        @staticmethod
        def from_config(config):
            seen.append("scratch")
            return Reader(config, seen)

    class AutoModelForImageClassification(AutoModelForSequenceClassification):
        pass

    return SimpleNamespace(
        AutoConfig=AutoConfig,
        AutoModelForSequenceClassification=AutoModelForSequenceClassification,
        AutoModelForImageClassification=AutoModelForImageClassification,
    )


@pytest.fixture
def seen(monkeypatch):
    inputs = []
    monkeypatch.setitem(sys.modules, "transformers", stand_in(inputs))
    return inputs


def test_tokens_go_in_and_logits_come_out(seen):
    network = build("transformers:tiny", **SIZES)
    logits = network(torch.tensor([[5, 7, 9], [5, 9, 9]]))
    assert (logits.shape, logits.dtype) == ((2, 4), torch.float32)
    assert network.training
    assert network.network.training
    assert seen[0]["attention_mask"].tolist() == [[1, 1, 0], [1, 0, 0]]  # 9 is the padding


def test_parts_of_a_text_are_named(seen):
    network = build("transformers:tiny", **SIZES)
    network(torch.arange(12).reshape(2, 3, 2))
    assert {name: value.tolist() for name, value in seen[0].items()} == {
        "input_ids": [[0, 1], [6, 7]],
        "attention_mask": [[2, 3], [8, 9]],
        "token_type_ids": [[4, 5], [10, 11]],
    }
    network({"anything": torch.ones(2, 3)})
    assert seen[1].keys() == {"anything"}


def test_images_are_pixels(seen):
    build("transformers:tiny", **SIZES, task="image")(torch.rand(2, 3, 8, 8))
    assert seen[0].keys() == {"pixel_values"}


def test_scratch_takes_the_shape_alone(seen):
    build("transformers:tiny", **SIZES, scratch=True)
    assert seen == ["scratch"]


@pytest.mark.usefixtures("seen")
def test_unsupported_uses_of_transformers_are_reported(tmp_path):
    with pytest.raises(ChoiceError, match=r"transformers:none .* a network for texts: none is"):
        build("transformers:none", **SIZES)
    with pytest.raises(ChoiceError, match=r"task must be one of text, image; got 'sound'"):
        build("transformers:tiny", **SIZES, task="sound")
    with pytest.raises(ChoiceError, match=r"tiny has its own weights and cannot load .*w\.pth"):
        build("transformers:tiny", **SIZES, pretrained=tmp_path / "w.pth")
    with pytest.raises(PredictionError, match=r"texts must be tokens .*got \(2, 4, 3\)"):
        build("transformers:tiny", **SIZES)(torch.ones(2, 4, 3, dtype=torch.long))


# A user's own.

OWN = """
from torch import nn

WIDTH = 3

def simple(classes):
    return nn.LazyLinear(classes)

def full(classes, channels, size, *, width=2):
    first = nn.Linear(channels * size**2, width)
    return nn.Sequential(nn.Flatten(), first, nn.Linear(width, classes))

def open_to_all(**options):
    network = nn.Linear(1, 1)
    network.options = options
    return network

def picky(classes, *, depth):
    return nn.Linear(depth, classes)

def wrong(classes):
    return "a network"
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "own_networks.py").write_text(OWN)
    before = dict(sys.modules)
    yield tmp_path
    for name in sys.modules.keys() - before.keys():
        del sys.modules[name]


def test_own_function_gets_what_it_takes(own):
    path = list(sys.path)
    network = build("own_networks:full", **SIZES, width=5)
    assert network(torch.rand(2, 3, 8, 8)).shape == (2, 4)
    assert network[1].out_features == 5
    assert build("own_networks:simple", **SIZES).out_features == 4
    assert build("own_networks:open_to_all", **SIZES, extra=1).options == {
        "classes": 4,
        "channels": 3,
        "size": 8,
        "extra": 1,
    }
    assert sys.path == path


def test_own_network_follows_from_the_seed(own):
    first, again, other = (
        build("own_networks:full", **SIZES | {"seed": seed})[1].weight for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("own_networks:ful", {}, r"own_networks\.py has no function 'ful'\. Did you mean 'full'"),
        ("own_networks:WIDTH", {}, r"own_networks\.py has no function 'WIDTH'"),
        ("own_networks:", {}, r"own_networks\.py has no function ''\. There are: simple, full"),
        ("missing:full", {}, r"missing:full: no module 'missing' in .*Start from the f"),
        ("missing.part:full", {}, r"no module 'missing\.part' in"),
        ("own_networks.py:full", {}, r"no module 'own_networks\.py' in"),
        ("./own_networks.py:full", {}, r"'\./own_networks\.py' is not the name of a module"),
        (":full", {}, r"'' is not the name of a module\. .*module:function"),
        ("own_networks:full", {"widht": 1}, r"full has no option 'widht'\. Did you mean 'width'"),
        ("own_networks:picky", {}, r"picky needs depth"),
        ("own_networks:wrong", {}, r"wrong must return a torch\.nn\.Module; got str"),
    ],
)
def test_wrong_names_and_functions_are_reported(own, name, options, message):
    with pytest.raises(ChoiceError, match=message):
        build(name, **SIZES, **options)


def test_what_the_own_module_lacks_comes_through(own):
    (own / "lacking_networks.py").write_text("import not_there_at_all")
    with pytest.raises(ModuleNotFoundError, match="not_there_at_all"):
        build("lacking_networks:full", **SIZES)
