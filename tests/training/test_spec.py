import re
import subprocess
import sys
from pathlib import Path

import pytest
from small_run import SMALL_CNN, changed, train_text

import accord
from accord.errors import SpecError
from accord.training import load_spec, network_specs, parse_spec
from accord.training._losses import LOSSES
from accord.training._spec import LOSS_NAMES, NETWORK_NAMES, registered_names
from accord.training.networks import NETWORKS

SHA = "0" * 64
GOOD = """
name = "mine"

[data]
kind = "cifar10"
path = "data"
verify = true

[noise]
kind = "symmetric"
rate = 0.4

[train]
networks = 3
network = "resnet18"
epochs = 10
batch = 64
optimizer = { kind = "sgd", lr = 0.05, nesterov = true }
schedule = "cosine"
augment = ["crop", "flip"]
loss = { kind = "elr", beta = 0.9 }

[record]
every = 0.1
splits = ["test", "train"]
checkpoints = 5
"""


def test_a_good_spec_is_read():
    spec = parse_spec(GOOD)
    assert spec.data.options == {"verify": True}
    assert spec.train.schedule.kind == "cosine"
    assert spec.train.loss.options == {"beta": 0.9}
    assert spec.record.splits == ("test", "train")
    members = network_specs(spec)
    assert [member.number for member in members] == [0, 1, 2]
    assert len({member.seed for member in members}) == 3


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("epochs = 10", "epoch = 10", r"line 16: there is no key train\.epoch. Did you mean 'epoc"),
        ("batch = 64", "batch = 0", r"line 17: train\.batch: .*greater than or equal to 1; got 0"),
        ("rate = 0.4", "rate = 1.4", r"line 11: noise\.rate: .*less than or equal to 1; got 1\.4"),
        ('kind = "sgd"', 'kind = "sdg"', r"line 18: train\.optimizer\.kind: .*'sgd' or 'adamw'"),
        ('"cosine"', '"cosin"', r"line 19: train\.schedule\.kind: .*'cosine'"),
        ('"flip"', '"flop"', r"line 20: train\.augment.*; got 'flop'"),
        ("lr = 0.05", "rate = 0.05", r"line 18: there is no key train\.optimizer\.rate"),
        ("networks = 3", "networks = 0", r"line 14: train\.networks"),
        ("batch = 64", "seed = -1", r"line 17: train\.seed: .*greater than or equal to 0; got -1"),
        ("networks = 3", "networks = [{ seed = -1 }]", r"line 14: train\.networks.*seed"),
        ("rate = 0.4", "rate = 0.4\nseed = -1", r"line 12: noise\.seed: .*; got -1"),
        ("lr = 0.05", "momentum = 0", r"train\.optimizer: nesterov requires a mom"),
        ("lr = 0.05", "betas = [0.9, 1.0]", r"train\.optimizer\.betas.*less than 1; got 1\.0"),
        ("every = 0.1", "every = inf", r"line 2\d: record\.every: .*a finite number; got inf"),
        ('kind = "symmetric"\n', "", r"noise\.rate is given, but noise\.kind is none"),
        ('"test", "train"]', "]", r"record\.splits: .*at least 1"),
        ('"test", "train"]', '"test", "test"]', r"record\.splits contains a duplicate: test, test"),
        ("batch = 64", f"seed = {2**63}", r"line 17: train\.seed: .*less than"),
        ("every = 0.1", "every = 1e-300", r"record\.every: .*greater than or equal"),
        ("every = 0.1", "every = 0.3", "a whole number of epochs, or 1 divided by one"),
        ('"train"]', '"validation"]', r"data\.validation holds out nothing"),
        ('name = "mine"', 'name = "a/b"', "line 2: name: "),
        ("[train]", "[train", "not valid TOML: .*line 13"),
        ("epochs = 10\n", "", r"train\.epochs is missing"),
        ("batch = 64", 'targets = "a"', r"line 17: train\.targets: .*pattern"),
        ("batch = 64", 'extra = "a"', r"train\.extra requires train\.targets"),
        ("batch = 64", f'targets = "{SHA}"\nextra = "a"', "leave train out of record"),
        ("batch = 64", f'targets = "{SHA}"\nclean_only = true', r"train\.targets excludes"),
        ("[noise]", "[noisy]", r"line 9: there is no key noisy\. Did you mean 'noise'"),
    ],
)
def test_a_bad_spec_is_refused_with_the_line_and_the_nearest_name(old, new, words):
    assert old in GOOD
    with pytest.raises(SpecError, match=f"(?s){words}"):
        parse_spec(GOOD.replace(old, new))


def test_all_mistakes_are_reported_together():
    with pytest.raises(SpecError) as caught:
        parse_spec(GOOD.replace("batch = 64", "batch = 0").replace("epochs = 10", "epoch = 1"))
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("networks = 3", "networks = 0", "train.networks: Input should be greater than or equal"),
        ("networks = 3", 'networks = "x"', "train.networks: Input should be a valid integer"),
        ("networks = 3", "networks = true", "train.networks: true and false are not allowed"),
        (
            "networks = 3",
            'networks = [{}, { netwrok = "mlp" }]',
            "there is no key train.networks.1.netwrok. Did you mean 'network'?",
        ),
        ("networks = 3", "networks = [{ lr = 0 }]", "train.networks.0.lr: Input should be greater"),
        ("epochs = 10", "epochs = true", "train.epochs: true and false are not allowed here"),
        ("lr = 0.05", "lr = true", "train.optimizer.lr: true and false are not allowed"),
        (
            "checkpoints = 5",
            "checkpoints = false",
            "record.checkpoints: true and false are",
        ),
        ("checkpoints = 5", "checkpoints = -1", "record.checkpoints: Input should be greater than"),
        ("checkpoints = 5", 'checkpoints = "al"', "record.checkpoints: Input should be 'all'"),
    ],
)
def test_one_mistake_is_one_line(old, new, words):
    assert old in GOOD
    with pytest.raises(SpecError) as caught:
        parse_spec(GOOD.replace(old, new))
    (line,) = str(caught.value).splitlines()
    assert re.match(rf"spec, line \d+: {re.escape(words)}", line)


def test_members_may_differ_in_everything():
    text = GOOD.replace(
        "networks = 3",
        'networks = [{ lr = 0.1 }, { network = "densenet121", seed = 9, loss = "cross-entropy" }]',
    )
    first, second = network_specs(parse_spec(text))
    assert (first.optimizer.lr, first.optimizer.nesterov) == (0.1, True)
    assert (second.network, second.seed, second.loss.kind) == ("densenet121", 9, "cross-entropy")
    assert second.optimizer.lr == 0.05


def test_a_batch_ensemble_is_one_network_recorded_as_many():
    text = GOOD.replace("networks = 3", "networks = 2\nbatch_ensemble = 4")
    assert [(one.number, one.members) for one in network_specs(parse_spec(text))] == [
        (0, 4),
        (4, 4),
    ]


def test_the_digest_depends_on_all_keys_but_name_and_root():
    spec = parse_spec(GOOD)
    assert parse_spec(GOOD.replace('"mine"', '"other"')).digest() == spec.digest()
    assert parse_spec(GOOD.replace('"cosine"', '{ kind = "cosine" }')).digest() == spec.digest()
    assert parse_spec(GOOD.replace("0.4", "0.2")).digest() != spec.digest()


def test_paths_start_from_the_root_and_the_home_of_whoever_trains(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    spec = parse_spec(GOOD)
    rooted = parse_spec(f'root = "~/data"\n{GOOD}')
    assert (spec.resolve_path("c10"), rooted.resolve_path("c10")) == (
        Path("c10"),
        tmp_path / "data/c10",
    )
    assert rooted.resolve_path("~/c10") == tmp_path / "c10"
    assert rooted.digest() == spec.digest()


def test_a_network_of_transformers_lies_below_the_root_if_there_is_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny").mkdir()
    (tmp_path / "resnet18").mkdir()
    spec = parse_spec(GOOD)
    assert spec.resolve_network("transformers:tiny") == "transformers:tiny"
    rooted = spec.model_copy(update={"root": str(tmp_path)})
    assert rooted.resolve_network("transformers:tiny") == f"transformers:{tmp_path / 'tiny'}"
    assert rooted.resolve_network("transformers:none") == "transformers:none"
    assert rooted.resolve_network("resnet18") == "resnet18"


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SpecError, match=r"nothing\.toml: cannot be read"):
        load_spec(tmp_path / "nothing.toml")


NARROW = {
    "mlp": "{ widths = [8] }",
    "small-cnn": "{ width = 4 }",
    "resnet18": "{ width = 8 }",
    "resnet32": "{ width = 4 }",
    "resnet50": "{ width = 4 }",
    "densenet121": "{ growth = 4 }",
    "wideresnet28-10": "{ widen = 1 }",
}


def test_listed_names_are_unique():
    names = registered_names()
    assert len(set(names)) == len(names)
    for kind in ("reader", "noise", "network", "loss", "optimizer", "schedule", "augment"):
        assert any(name.startswith(f"{kind}/") for name in names)


@pytest.mark.parametrize(
    "name",
    [
        one
        for one in registered_names()
        if not one.startswith("reader/")  # each has a layout of its own: tests/data/readers
        and one not in ("noise/superclass", "noise/file")
    ],
)
def test_everything_listed_trains_for_one_epoch(tmp_path, name):
    kind, _, what = name.partition("/")
    extra = "\nmapping = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]" if what == "map" else ""
    options = {
        "noise": ('kind = "symmetric"\nrate = 0.4', f'kind = "{what}"'
                  + ("" if what == "none" else "\nrate = 0.4") + extra),
        "loss": ("batch = 64", f'batch = 64\nloss = "{what}"'),
        "optimizer": ("{ lr = 0.02 }", f'{{ kind = "{what}", lr = 0.02 }}'),
        "schedule": ("batch = 64", f'batch = 64\nschedule = "{what}"'),
        "augment": ('["shift"]', f'["{what}"]'),
        "network": (SMALL_CNN, f'network = "{what}"\noptions = {NARROW.get(what, "{}")}'),
    }  # fmt: skip
    text = changed(options[kind], ("epochs = 4", "epochs = 1"), ("networks = 2", "networks = 1"))
    assert train_text(tmp_path / "run", text).failed == {}
    assert accord.open(tmp_path / "run/test").epochs == 1


def test_listed_names_are_those_that_can_be_built():
    assert tuple(NETWORKS) == NETWORK_NAMES
    assert tuple(LOSSES) == LOSS_NAMES


def test_listing_names_and_reading_a_spec_load_no_torch():
    program = (
        "import sys; from accord.training import Spec, parse_spec, registered_names; "
        "registered_names(); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
