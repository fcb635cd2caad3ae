"""Where the data lie is no part of a run: it goes on however their folder is spelt."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accord.errors import SpecError
from accord.experiments.comparison._runs import train_here
from accord.experiments.paper import all_targets, reproduce
from accord.experiments.paper._measure import _pictures
from accord.experiments.paper._protocols import build_spec, protocols
from accord.experiments.paper._required_runs import ReproduceContext
from accord.training.spec import load_spec

TABLE1 = all_targets()["table1/cifar10/sym/40"]
TABLE2 = all_targets()["table2/cifar10/sym/40"]
SMALL = {"networks": 2, "network": "mlp", "epochs": 2, "batch": 16, "optimizer": {"lr": 0.01}}


@pytest.fixture
def spellings(tmp_path, monkeypatch):
    """Lay out a little of CIFAR-10; return three names for the folder that it lies in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(protocols()["scale"]["quick"], "train", SMALL)
    monkeypatch.setitem(
        protocols()["data"]["cifar10"], "read", {"kind": "cifar10", "complete": False}
    )
    folder = tmp_path / "data/cifar-10-batches-bin"
    folder.mkdir(parents=True)
    generator = np.random.default_rng(0)
    for name in [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]:
        rows = generator.integers(0, 256, (20, 3073)).astype(np.uint8)
        rows[:, 0] = np.arange(20) % 10
        rows.tofile(folder / f"{name}.bin")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    return [tmp_path / "data", tmp_path / "link", Path("data")]


def stop_at_once(spec, out, progress):
    def stop(*_):
        raise KeyboardInterrupt

    return train_here(spec, out, stop)


@pytest.mark.parametrize("spelling", [1, 2], ids=["link", "relative"])
@pytest.mark.parametrize("target", [TABLE1, TABLE2], ids=["table1", "table2"])
def test_a_run_goes_on_however_the_folder_of_its_data_is_spelt(
    target, spelling, spellings, trainer, tmp_path
):
    workshop = ReproduceContext(tmp_path / "out", spellings[0], stop_at_once, on_cpu=True)
    with pytest.raises(KeyboardInterrupt):
        reproduce(target, workshop)
    (begun,) = tmp_path.glob("out/**/spec.toml")
    reproduce(target, replace(workshop, data=spellings[spelling], train=trainer))
    assert trainer.trained == [begun.parent.name]
    assert list(tmp_path.glob("out/**/spec.toml")) == [begun]


def test_other_data_in_the_folder_of_a_run_are_refused_without_a_word_of_the_place(
    spellings, tmp_path
):
    reproduce(TABLE1, ReproduceContext(tmp_path / "out", spellings[0], on_cpu=True))
    (path,) = tmp_path.glob("out/**/spec.toml")
    spec = load_spec(path)
    data = spec.data.model_copy(update={"path": "other"})
    other = spec.model_copy(update={"root": "elsewhere", "data": data})
    with pytest.raises(SpecError, match='"path": "other"') as caught:
        train_here(other, path.parent, None)
    assert "elsewhere" not in str(caught.value)


def test_pictures_come_from_the_folder_of_the_data(spellings):
    spec = build_spec(TABLE1.cells["noisy"], "quick")
    assert _pictures(spec, spellings[0]).shape == (20, 32, 32, 3)
    assert _pictures(spec, spellings[0] / "nowhere") is None
