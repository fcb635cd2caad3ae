import pytest
from one_thread import one_thread  # noqa: F401 -- for every test here


@pytest.fixture(scope="module", autouse=True)
def npc_in_ten_epochs():
    """NPC learns for ten epochs of few samples too: what it takes to learn well takes long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("accord.baselines.npc.STEPS", 1)
        yield
