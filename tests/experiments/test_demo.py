"""The demo trains its spec, and resumes to the same bits."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from accord.data.readers.digits import load_digits
from accord.errors import RecordMismatch
from accord.experiments import demo
from accord.experiments.demo import run_demo
from accord.training import parse_spec


@pytest.fixture(scope="module", autouse=True)
def small_spec():
    """Two networks and two epochs."""
    with pytest.MonkeyPatch.context() as patch:
        small = demo.SPEC.replace("networks = 5", "networks = 2").replace("= 40", "= 2")
        patch.setattr(demo, "SPEC", small)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("finished")
    return out, run_demo(out)


def assert_same_votes(one, other):
    np.testing.assert_array_equal(one.labels[...], other.labels[...])
    np.testing.assert_array_equal(one.probabilities[...], other.probabilities[...])


def test_demo_writes_a_record_predictions_and_a_report(finished):
    out, record = finished
    assert sorted(path.name for path in out.iterdir()) == [
        "predictions.csv",
        "record",
        "report.html",
    ]
    assert (record.networks, record.epochs, record.samples, record.classes) == (2, 2, 719, 10)
    assert record.class_names == tuple("0123456789")


def test_truth_is_that_of_the_test_digits(finished):
    sizes = np.bincount(load_digits().labels)
    assert np.bincount(finished[1].truth).tolist() == [round(0.4 * size) for size in sizes]
    assert (finished[1].labels[:, -1] == finished[1].truth).mean() > 0.2  # by chance 0.1


def test_networks_differ(finished):
    first, second = finished[1].labels[...]
    assert not np.array_equal(first, second)


def test_interrupted_demo_resumes_to_the_same_bits(finished, tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_demo(tmp_path, progress=interrupt)
    assert not (tmp_path / "record").exists()
    assert_same_votes(run_demo(tmp_path), finished[1])


def test_finished_demo_trains_nothing(finished, tmp_path):
    shutil.copytree(finished[0] / "record", tmp_path / "record")
    run_demo(tmp_path, progress=lambda *_: pytest.fail("trained again"))


def test_another_record_is_refused(finished, monkeypatch):
    monkeypatch.setattr(demo, "SPEC", demo.SPEC.replace("epochs = 2", "epochs = 3"))
    with pytest.raises(RecordMismatch, match=r"2 networks and 3 epochs; this record has 2 and 2"):
        run_demo(finished[0])


def test_spec_has_forty_per_cent_symmetric_noise():
    spec = parse_spec(demo.SPEC)
    assert (spec.noise.kind, spec.noise.rate) == ("symmetric", 0.4)


@pytest.mark.parametrize(
    ("statement", "missing", "extra"),
    [
        ("import accord.experiments.demo", "torch", "train"),
        ("import accord.inference", "torch", "train"),
        ("import accord.training.networks", "torch", "train"),
        ("from accord.training import plan_run", "torch", "train"),
        ("from accord.training import train", "safetensors", "train"),
        ("import accord.testing", "hypothesis", "testing"),
    ],
)
def test_without_a_package_the_error_names_the_extra(statement, missing, extra):
    program = f"import sys; sys.modules['{missing}'] = None; {statement}"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "ExtraMissing" in run.stderr
    assert f"pip install 'accord[{extra}]'" in run.stderr


@pytest.mark.parametrize("command", ["train", "compare", "reproduce"])
def test_names_are_listed_without_torch(command):
    program = f"""
import sys; sys.modules.update(dict.fromkeys(["torch", "safetensors", "PIL", "matplotlib"]))
from accord.cli.app import run; sys.exit(run(["{command}", "--list", "--json"]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["items"]) > 10


def test_packages_load_no_torch():
    program = (
        "import sys, accord.data, accord.data.readers.digits, accord.data.noise, accord.training, "
        "accord.experiments; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
