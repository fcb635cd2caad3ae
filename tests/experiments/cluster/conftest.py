import pytest
from in_process_cluster import InProcessCluster

from accord.experiments.cluster import _remote_predict, _remote_train
from accord.experiments.cluster._ray import Cluster


@pytest.fixture
def here(monkeypatch):
    """Replace Ray's cluster by one in this process."""
    made = []

    def make(*given, **options):
        made.append(InProcessCluster(*given, **options))
        return made[-1]

    monkeypatch.setattr(_remote_train, "Cluster", make)
    monkeypatch.setattr(_remote_predict, "Cluster", make)
    return made


@pytest.fixture(scope="session")
def joined():
    pytest.importorskip("ray", reason="ray is not installed; `make clients` installs it")
    with Cluster() as joined:
        yield joined
