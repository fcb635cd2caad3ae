import pytest
from compared import SPEC

from accord.experiments.comparison import compare


@pytest.fixture(scope="session")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("compared")


@pytest.fixture(scope="session")
def compared(out):
    """Every method's measurement."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("accord.baselines.npc.STEPS", 1)
        return {one.method.name: one.measurements[0] for one in compare(SPEC, out).methods}
