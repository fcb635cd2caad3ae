import pytest
from one_thread import one_thread  # noqa: F401 -- for every test here


@pytest.fixture(scope="module", autouse=True)
def npc_in_ten_epochs():
    """Train NPC for ten epochs, however few the samples; enough steps to learn take long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("accord.baselines.npc.STEPS", 1)
        yield
