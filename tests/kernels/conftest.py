"""Every kernel runs on both sets of loops, in blocks cut fine, with ranks for classes."""

import pytest

FORCED = {
    "as-set": {},
    "small-blocks": {
        "_blocks.NARROWEST": 1,
        "_blocks.WIDEST": 3,
        "_winners.WIDEST_GUESS": 4,
        "_numpy_loops.COUNTED_AT_ONCE": 4,
        "_numpy_loops.COMPARED_CLASSES": 0,
    },
    "ranked": {"_blocks.CELLS_PER_VOTE": 0},
}


@pytest.fixture(scope="module", params=["numpy", "numba"])
def loops(request):
    if request.param == "numba":
        pytest.importorskip("numba")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACCORD_KERNELS", request.param)
        yield request.param


@pytest.fixture(scope="module", params=FORCED)
def engine(request, loops):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in FORCED[request.param].items():
            patch.setattr(f"accord.kernels.{name}", value)
        if request.param == "small-blocks" and loops == "numba":
            patch.setattr("accord.kernels._numba_loops.RUN_AT_ONCE", 2)
        yield f"{loops}-{request.param}"
