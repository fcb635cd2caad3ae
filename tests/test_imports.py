"""`import accord` and `accord --help` stay light, and no file escapes the import contracts."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

HEAVY = ("torch", "ray", "numba", "scipy", "matplotlib", "zarr", "sklearn", "jinja2", "hypothesis")


def loaded_by(statement):
    script = f"import sys\n{statement}\nprint(*sorted({HEAVY!r} & sys.modules.keys()))"
    script = script.replace(f"{HEAVY!r} &", f"set({HEAVY!r}) &")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True
    )
    return done.stdout.splitlines()[-1].split()


HELP = """
from accord.cli.app import run
assert run(["--help"]) == 0
"""


@pytest.mark.parametrize(
    "statement",
    [
        "import accord",
        HELP,
        "import accord; accord.Recorder",
        "import accord; accord.open",
        "import accord.experiments.cluster",
    ],
)
def test_nothing_heavy_is_loaded(statement):
    assert loaded_by(statement) == []


def test_the_check_can_fail():
    assert loaded_by("import scipy, jinja2") == ["jinja2", "scipy"]


def test_every_public_name_is_there():
    import accord

    assert set(dir(accord)) == set(accord.__all__)
    for name in accord.__all__:
        assert getattr(accord, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'clsoe'"):
        _ = accord.clsoe


# One new file for each contract of pyproject.toml: what it imports, and the contract it breaks.
FORBIDDEN = {
    "store/_new.py": ("accord.rules", "Each package imports only packages below it"),
    "_new.py": ("accord.report", "Only commands and experiments render reports"),
    "training/_new.py": ("accord.rules", "Training a network needs no rule and no analysis"),
    "analysis/_new.py": ("torch", "torch stays on the writing side"),
    "report/_new.py": ("matplotlib", "matplotlib stays in report._mpl"),
    "cli/_new.py": ("jinja2", "jinja2 stays in report.html"),
    "kernels/_new.py": ("numba", "numba stays in kernels._numba_loops"),
    "experiments/cluster/_new.py": ("ray", "ray stays in experiments.cluster._ray"),
    "rules/_new.py": ("zarr", "zarr and obstore stay in the store"),
    "experiments/_new.py": ("rich", "typer and rich stay in the command line"),
    "_recorders/_new.py": ("sklearn", "Each framework stays in its face"),
    "inference/_new.py": (
        "safetensors.torch",
        "Pillow, pyarrow, safetensors and hypothesis stay where they are read",
    ),
    "data/_new.py": ("scipy", "scipy and pandas are for tests and benchmarks"),
}


@pytest.fixture
def copy(tmp_path):
    """A copy of the package and of its contracts."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src/accord", tmp_path / "accord", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def broken_contracts(folder):
    """Run lint-imports on the copy and return the contracts that it reports as broken."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"}
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert re.search(r"^Contracts: \d+ kept, \d+ broken\.", done.stdout, re.M), done.stdout
    return re.findall(r"^(.+) BROKEN\b", done.stdout, re.M)


def test_the_package_keeps_its_import_contracts(copy):
    assert broken_contracts(copy) == []


def test_each_contract_binds_new_files(copy):
    for name, (imported, _) in FORBIDDEN.items():
        (copy / "accord" / name).write_text(f"import {imported}\n")
    contracts = tomllib.loads((copy / "pyproject.toml").read_text())["tool"]["importlinter"]
    names = [contract["name"] for contract in contracts["contracts"]]
    assert broken_contracts(copy) == names == [name for _, name in FORBIDDEN.values()]


def test_a_new_package_needs_a_place_among_the_layers(copy):
    (copy / "accord/extra").mkdir()
    (copy / "accord/extra/__init__.py").touch()
    assert broken_contracts(copy) == ["Each package imports only packages below it"]
