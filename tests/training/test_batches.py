import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from accord.training.batches import (
    ImageBatches,
    TableBatches,
    augment,
    channel_statistics,
    column_statistics,
    reach_of,
    shift_images,
)
from accord.training.seeds import Draws, OwnRandomness, derive_seed, draw_epoch

CPU = torch.device("cpu")


def slowly_shifted(image, down, right):
    """Pixel by pixel: (channel, row, column)."""
    channels, rows, columns = image.shape
    shifted = torch.zeros_like(image)
    for channel in range(channels):
        for row in range(rows):
            for column in range(columns):
                if 0 <= row - down < rows and 0 <= column - right < columns:
                    shifted[channel, row, column] = image[channel, row - down, column - right]
    return shifted


@given(st.data(), st.integers(0, 3), st.integers(1, 5), st.integers(1, 5))
def test_fast_shift_equals_the_slow_one(data, pixels, rows, columns):
    move = st.tuples(*[st.integers(-pixels, pixels)] * 2)
    moves = data.draw(st.lists(move, min_size=1, max_size=4))
    images = torch.arange(1.0, len(moves) * 2 * rows * columns + 1)
    images = images.reshape(len(moves), 2, rows, columns)
    slow = [slowly_shifted(image, *move) for image, move in zip(images, moves, strict=True)]
    fast = shift_images(images, torch.tensor(moves), pixels=pixels)
    assert torch.equal(fast, torch.stack(slow))


def test_images_are_flipped_and_moved_as_drawn_for_each_of_them():
    images = torch.arange(1.0, 28).reshape(3, 1, 3, 3)
    draws = Draws(torch.arange(9), torch.arange(9) % 2 == 1, torch.ones(9, 2, dtype=torch.long))
    chosen = torch.tensor([4, 7, 2])
    flipped = augment(images, chosen, draws, kinds=("flip",))
    assert torch.equal(flipped[0], images[0])
    assert torch.equal(flipped[1], images[1].flip(2))
    moved = augment(images, chosen, draws, kinds=("shift",))
    assert torch.equal(moved[2], slowly_shifted(images[2], 1, 1))
    assert torch.equal(augment(images, chosen, draws, kinds=()), images)


def test_crops_reach_four_pixels_and_shifts_one():
    assert [reach_of(kinds) for kinds in (("crop", "flip"), ("shift",), ("flip",))] == [4, 1, 0]


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
    own = OwnRandomness(7, CPU)
    with own.active():
        first = torch.rand(3)
    torch.rand(5)
    with own.active():
        second = torch.rand(3)
    whole = OwnRandomness(7, CPU)
    with whole.active():
        both = torch.rand(6)
    assert torch.equal(torch.cat([first, second]), both)
    torch.set_rng_state(before)


def test_images_are_scaled_by_the_statistics_of_the_training_samples():
    images = np.random.default_rng(0).integers(0, 256, (50, 3, 4, 4)).astype(np.uint8)
    mean, spread = channel_statistics(images)
    batches = ImageBatches(images, device=CPU, mean=mean, spread=spread)
    seen = batches.take(torch.arange(50))
    assert seen.mean(dim=(0, 2, 3)).abs().max() < 1e-4
    assert (seen.std(dim=(0, 2, 3), correction=0) - 1).abs().max() < 1e-3
    assert len(batches) == 50


def test_images_that_lie_on_disk_are_read_as_they_are_taken():
    images = np.random.default_rng(0).integers(0, 256, (9, 1, 2, 2)).astype(np.uint8)

    asked = []

    class Files:
        def __len__(self):
            return 9

        def read(self, indices):
            asked.append(indices.tolist())
            return images[indices]

    still = {"mean": np.zeros(1, np.float32), "spread": np.ones(1, np.float32)}
    taken = ImageBatches(Files(), device=CPU, **still).take(torch.tensor([8, 1]))
    np.testing.assert_array_equal(taken.numpy(), images[[8, 1]])
    assert asked == [[8, 1]]
    np.testing.assert_allclose(channel_statistics(Files())[0], images.mean(), rtol=1e-6)


def test_a_constant_column_stays_finite():
    rows = np.array([[1, 5], [3, 5]], np.float32)
    mean, spread = column_statistics(rows)
    taken = TableBatches(rows, device=CPU, mean=mean, spread=spread).take(torch.tensor([1, 0]))
    np.testing.assert_array_equal(taken.numpy(), [[1, 0], [-1, 0]])


def test_a_black_channel_stays_finite():
    _, spread = channel_statistics(np.zeros((2, 1, 2, 2), np.uint8))
    assert spread == pytest.approx([1.0])
