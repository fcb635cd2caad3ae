"""Build the wheel and the source distribution; use the one, run tests of the other."""

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*command, **options):
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", out, ROOT)
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=True)
    constraints = ROOT / "constraints.txt"
    run(folder / "bin/pip", "install", "--quiet", "--constraint", constraints, wheel)
    return folder / "bin"


def test_the_wheel_carries_what_the_package_reads(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "accord/py.typed",
        "accord/data/digits.npz",
        "accord/report/page.html.jinja",
        "accord/store/examples/cifar10-sym40.zip",
    } <= names
    assert not [name for name in names if name.startswith(("tests", "docs"))]


def test_the_command_scores_the_bundled_record(installed, tmp_path):
    out = run(installed / "accord", "score", "example://cifar10-sym40", "--json", cwd=tmp_path)
    assert json.loads(out)["rules"]["max-agreement"]["accuracy"] == 0.8868


def test_a_loop_records_and_predicts(installed, tmp_path):
    script = """
import accord
for network in range(2):
    with accord.Recorder("runs/mine", network=network, samples=3, classes=2) as recorder:
        for epoch in range(recorder.epochs, 4):
            recorder.record([0, 1, epoch % 2])
print(accord.open("runs/mine").predict().labels.tolist())
"""
    assert run(installed / "python", "-c", script, cwd=tmp_path) == "[0, 1, 0]\n"


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["demo"], "accord[train]"),
        (["reproduce", "table1/cifar10/sym/40"], "accord[train]"),
        (["report", "example://cifar10-sym40"], "accord[report]"),
        (["score", "s3://bucket/record"], "accord[cloud]"),
        (["predict", "example://cifar10-sym40", "--out", "labels.parquet"], "accord[parquet]"),
    ],
)
def test_what_is_not_installed_is_named(installed, tmp_path, arguments, extra):
    done = subprocess.run(
        [installed / "accord", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"pip install '{extra}'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_source_distribution_can_run_its_tests(tmp_path):
    run(sys.executable, "-m", "build", "--sdist", "--outdir", tmp_path, ROOT)
    (packed,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(packed) as file:
        file.extractall(tmp_path, filter="data")
    folder = tmp_path / packed.name.removesuffix(".tar.gz")
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    pytest_command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    run(*pytest_command, "--collect-only", "tests", "docs", cwd=folder, env=environment)
    some = (
        "tests/test_imports.py",
        "docs/test_documents.py",
        "-k",
        "not document_runs and not trains",
    )
    run(*pytest_command, *some, cwd=folder, env=environment)
