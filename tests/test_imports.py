"""`import accord` and `accord --help` stay light."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "ray", "numba", "scipy", "matplotlib", "zarr", "sklearn", "jinja2", "hypothesis")


def loaded_by(statement):
    script = f"import sys\n{statement}\nprint(*sorted({HEAVY!r} & sys.modules.keys()))"
    script = script.replace(f"{HEAVY!r} &", f"set({HEAVY!r}) &")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
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
