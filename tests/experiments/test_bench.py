import numpy as np
import pytest

from accord.experiments import bench
from accord.kernels import running_winners


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(bench, "QUICK_SHAPES", ((20, 50, 3),))
    monkeypatch.setattr(bench, "FULL_SHAPES", ((20, 50, 3), (20, 50, 300)))
    monkeypatch.setattr(bench, "RUNNING_SHAPE", (2, 3, 50, 4))


def test_full_bench_includes_running_winners(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = bench.run_bench(full=True)
    assert any("running winners of 2 × 3 × 50 × 4" in one["what"] for one in results["timings"])
    assert "times as fast" in bench.bench_text(results)


def test_votes_have_the_leading_share():
    labels = bench.draw_votes(1000, 200, 10)
    leading = max(np.bincount(labels[:, 0])) / 1000
    assert labels.dtype == np.uint8
    assert leading == pytest.approx(0.75 + 0.25 / 10, abs=0.06)


def test_numpy_alternative_gives_the_same_running_winners():
    labels = bench.draw_votes(12, 40, 5, leading=0.3).reshape(3, 4, 40)
    expected = bench._winners_anew(labels, 5)
    np.testing.assert_array_equal(running_winners(labels, classes=5), expected)
