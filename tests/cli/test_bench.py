"""`accord bench` prints timings."""

import json

import pytest

from accord.cli.app import run
from accord.experiments import bench


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(bench, "QUICK_SHAPES", ((20, 50, 3),))
    monkeypatch.setattr(bench, "FULL_SHAPES", ((20, 50, 3), (20, 50, 300)))
    monkeypatch.setattr(bench, "RUNNING_SHAPE", (2, 3, 50, 4))


def test_bench_prints_json_only(small, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["bench", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert results["machine"]["cores"] >= 1
    peers = {(one["ours"], one["peer"]) for one in results["timings"]}
    assert {("numpy", "scipy.stats.mode"), ("numba", "torch.mode")} <= peers
    for one in results["timings"]:
        assert one["ratio"] == pytest.approx(one["peer_seconds"] / one["seconds"])
    assert list(tmp_path.iterdir()) == []
