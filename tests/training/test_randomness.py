import pytest
import torch

from accord.training._randomness import IsolatedRandomState, derive_seed, draw_epoch

CPU = torch.device("cpu")


def test_windows_lie_inside_the_image_and_have_the_areas_and_forms_they_should():
    windows = draw_epoch(5000, seed=1, epoch=2, windows=True).windows
    top, left, height, width = windows.unbind(dim=1)
    for start, size in ((top, height), (left, width)):
        assert start.min() >= 0
        assert (start + size).max() <= 1 + 1e-6
    area, form = height * width, width / height
    assert 0.08 <= area.min() < 0.1
    assert 0.98 < area.max() <= 1
    assert abs(area.mean().item() - 0.54) < 0.03  # the middle of 0.08..1, less what is cut
    assert form.min() == pytest.approx(3 / 4, abs=0.01)
    assert form.max() == pytest.approx(4 / 3, abs=0.01)
    assert len(draw_epoch(5, seed=1, epoch=2).windows) == 0


def test_draws_are_uniform_and_follow_from_seed_and_epoch():
    draws = draw_epoch(9000, seed=1, epoch=2, reach=1)
    assert sorted(draws.order.tolist()) == list(range(9000))
    assert abs(draws.flips.float().mean().item() - 0.5) < 0.03
    _, counts = draws.moves.unique(dim=0, return_counts=True)
    assert len(counts) == 9
    assert (counts - 1000).abs().max() < 150  # five standard deviations
    again, other = draw_epoch(9000, seed=1, epoch=2, reach=1), draw_epoch(9000, seed=1, epoch=3)
    assert all(torch.equal(a, b) for a, b in zip(draws, again, strict=True))
    assert not torch.equal(draws.order, other.order)


def test_derived_seeds_differ():
    seeds = {derive_seed(a, b, c) for a in range(5) for b in range(5) for c in range(2)}
    assert len(seeds) == 50
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_own_randomness_goes_on_where_it_stopped_and_leaves_the_global_one():
    before = torch.get_rng_state()
    own = IsolatedRandomState(7, CPU)
    with own.active():
        first = torch.rand(3)
    torch.rand(5)
    with own.active():
        second = torch.rand(3)
    whole = IsolatedRandomState(7, CPU)
    with whole.active():
        both = torch.rand(6)
    assert torch.equal(torch.cat([first, second]), both)
    torch.set_rng_state(before)
