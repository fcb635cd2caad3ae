"""Everything that is listed can be used."""

import subprocess
import sys
from typing import get_args

import pytest
from small_run import SMALL_CNN, changed, train_text

import accord
from accord.training._loop import SCHEDULES
from accord.training._losses import LOSSES
from accord.training._names import LOSS_NAMES, NETWORK_NAMES, registered_names
from accord.training._spec import ScheduleSpec
from accord.training.networks import NETWORKS

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
    assert set(get_args(ScheduleSpec.model_fields["kind"].annotation)) == set(SCHEDULES)


def test_listing_names_and_reading_a_spec_load_no_torch():
    program = (
        "import sys; from accord.training import Spec, parse_spec, registered_names; "
        "registered_names(); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
