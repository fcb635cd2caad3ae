import shutil

import pytest
from one_thread import one_thread  # noqa: F401 -- for every test here

import accord
from accord.data import read_dataset
from accord.training import parse_spec, train

TEXT = """
name = "small"
[data]
kind = "digits"
per_class = 80
[noise]
kind = "symmetric"
rate = 0.4
[train]
networks = 3
network = "small-cnn"
options = { width = 8 }
epochs = 6
batch = 64
optimizer = { lr = 0.1 }
[record]
probabilities = true
checkpoints = 4
"""


def write_run(out, *pairs, networks=None):
    """Train a small run; `pairs` of old and new text change its spec."""
    text = TEXT
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    train(parse_spec(text), out, source=text, networks=networks)
    return out


@pytest.fixture(scope="session")
def train_small():
    return write_run


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """A run of three networks, with checkpoints at epochs 0, 2, 3 and 5 of six."""
    return write_run(tmp_path_factory.mktemp("inference") / "run")


@pytest.fixture
def copied(whole, tmp_path):
    """A copy of the run that a test may change."""
    return shutil.copytree(whole, tmp_path / "copy")


@pytest.fixture(scope="session")
def recorded(whole):
    """The run's own record at the epochs of its checkpoints."""
    return accord.open(whole / "test").select(epochs=[0, 2, 3, 5])


@pytest.fixture(scope="session")
def digits():
    return read_dataset("digits").test


DISTILLABLE = """
name = "noisy"
[data]
kind = "digits"
per_class = 40
[noise]
kind = "symmetric"
rate = 0.4
[train]
networks = 3
network = "mlp"
options = { widths = [64] }
epochs = 12
batch = 16
optimizer = { lr = 0.02, weight_decay = 0.0 }
[record]
splits = ["test", "train"]
checkpoints = 2
"""


@pytest.fixture(scope="session")
def distillable(tmp_path_factory):
    """A run of three networks that memorise wrong labels, with a record of the training split."""
    out = tmp_path_factory.mktemp("distil") / "run"
    train(parse_spec(DISTILLABLE), out)
    return out


@pytest.fixture
def copy_run(tmp_path):
    return lambda run: shutil.copytree(run, tmp_path / "copy")
