"""Numba is used when it is required, or when large work pays for it."""

import subprocess
import sys

import numpy as np
import pytest

from accord.errors import ChoiceError, ExtraMissing
from accord.kernels import _backend as backend
from accord.kernels import _numpy_loops as dense
from accord.kernels import winners
from accord.kernels._backend import kernels_for

SMALL = "import numpy; accord.kernels.winners(numpy.zeros((5, 9), int), classes=3)"


@pytest.fixture
def without_numba(monkeypatch):
    monkeypatch.delitem(sys.modules, "accord.kernels._numba_loops", raising=False)
    monkeypatch.setitem(sys.modules, "numba", None)


def loaded_by(statement):
    script = f"import sys\n{statement}\nprint(*sorted({{'numba', 'scipy'}} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_small_work_loads_numpy_alone(monkeypatch):
    monkeypatch.delenv(backend.VARIABLE, raising=False)
    assert loaded_by(f"import accord.kernels; {SMALL}") == []


def test_the_check_of_what_is_loaded_can_fail():
    assert "numba" in loaded_by("import accord.kernels._numba_loops")


def test_work_is_given_to_numba_from_where_it_pays(monkeypatch):
    fast = pytest.importorskip("accord.kernels._numba_loops")
    monkeypatch.delenv(backend.VARIABLE, raising=False)
    assert kernels_for(99, pays_from=100) is dense
    assert kernels_for(100, pays_from=100) is fast


def test_the_environment_forces_either(monkeypatch):
    fast = pytest.importorskip("accord.kernels._numba_loops")
    monkeypatch.setenv(backend.VARIABLE, "numba")
    assert kernels_for(0, pays_from=100) is fast
    monkeypatch.setenv(backend.VARIABLE, "numpy")
    assert kernels_for(100, pays_from=100) is dense


def test_an_unknown_choice_is_refused(monkeypatch):
    monkeypatch.setenv(backend.VARIABLE, "cuda")
    with pytest.raises(ChoiceError, match=r"ACCORD_KERNELS must be numpy or numba; got 'cuda'"):
        winners(np.zeros((1, 1), np.uint8), classes=1)


@pytest.mark.usefixtures("without_numba")
def test_numba_that_is_required_but_missing_raises_with_the_extra(monkeypatch):
    monkeypatch.setenv(backend.VARIABLE, "numba")
    with pytest.raises(ExtraMissing, match=r"ACCORD_KERNELS=numba .*pip install 'accord\[fast\]'"):
        winners(np.zeros((1, 1), np.uint8), classes=1)


@pytest.mark.usefixtures("without_numba")
def test_large_work_without_numba_is_done_by_numpy(monkeypatch):
    monkeypatch.delenv(backend.VARIABLE, raising=False)
    assert kernels_for(100, pays_from=100) is dense
