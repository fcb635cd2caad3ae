import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from accord.training._batches import (
    ImageBatches,
    TableBatches,
    TextBatches,
    augment,
    channel_statistics,
    column_statistics,
    crop_images,
    max_shift,
    shift_images,
)
from accord.training._randomness import Draws, draw_epoch

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
    draws = Draws(
        torch.arange(9),
        torch.arange(9) % 2 == 1,
        torch.ones(9, 2, dtype=torch.long),
        torch.tensor([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1 / 3, 1 / 3]])[[0, 0, 1, 0, 0, 0, 0, 0, 0]],
    )
    chosen = torch.tensor([4, 7, 2])
    flipped = augment(images, chosen, draws, kinds=("flip",))
    assert torch.equal(flipped[0], images[0])
    assert torch.equal(flipped[1], images[1].flip(2))
    moved = augment(images, chosen, draws, kinds=("shift",))
    assert torch.equal(moved[2], slowly_shifted(images[2], 1, 1))
    assert torch.equal(augment(images, chosen, draws, kinds=()), images)
    cropped = augment(images, chosen, draws, kinds=("resized-crop",))
    torch.testing.assert_close(cropped[:2], images[:2])
    torch.testing.assert_close(cropped[2], slowly_cropped(images[2], 0, 0, 1 / 3, 1 / 3))


def slowly_cropped(image, top, left, height, width):
    """Pixel by pixel, each the mean of its four neighbours by distance: (channel, row, column)."""
    rows, columns = image.shape[1:]
    cropped = torch.empty_like(image)
    for row in range(rows):
        for column in range(columns):
            y = min(max((top + (row + 0.5) / rows * height) * rows - 0.5, 0), rows - 1)
            x = min(max((left + (column + 0.5) / columns * width) * columns - 0.5, 0), columns - 1)
            above, before = int(y), int(x)
            below, after = min(above + 1, rows - 1), min(before + 1, columns - 1)
            down, right = y - above, x - before
            cropped[:, row, column] = (
                image[:, above, before] * (1 - down) * (1 - right)
                + image[:, above, after] * (1 - down) * right
                + image[:, below, before] * down * (1 - right)
                + image[:, below, after] * down * right
            )
    return cropped


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 1000))
def test_fast_crop_equals_the_slow_one(rows, columns, seed):
    windows = draw_epoch(3, seed=seed, epoch=0, windows=True).windows
    images = torch.arange(1.0, 3 * 2 * rows * columns + 1).reshape(3, 2, rows, columns)
    slow = [
        slowly_cropped(image, *window)
        for image, window in zip(images, windows.tolist(), strict=True)
    ]
    torch.testing.assert_close(
        crop_images(images, windows), torch.stack(slow), rtol=1e-4, atol=1e-3
    )


class Files:
    """Images on disk that count their reads."""

    def __init__(self):
        self.streamed = 0

    def __len__(self):
        return 6

    def read(self, indices):
        return np.asarray(indices, np.uint8).reshape(-1, 1, 1, 1) * np.ones((1, 1, 2, 2), np.uint8)

    def stream(self, batches):
        for batch in batches:
            self.streamed += 1
            yield self.read(batch)


def test_files_are_streamed_and_what_is_in_memory_is_taken():
    files = Files()
    one = {"device": CPU, "mean": np.zeros(1, np.float32), "spread": np.ones(1, np.float32)}
    on_disk = ImageBatches(files, **one)
    in_memory = ImageBatches(files.read(np.arange(6)), **one)
    parts = torch.tensor([3, 1, 0, 5, 4]).split(2)
    for streamed, taken in zip(on_disk.stream(parts), in_memory.stream(parts), strict=True):
        assert torch.equal(streamed, taken)
    assert files.streamed == 3


def test_crops_reach_four_pixels_and_shifts_one():
    assert [max_shift(kinds) for kinds in (("crop", "flip"), ("shift",), ("flip",))] == [4, 1, 0]


def test_images_are_scaled_by_the_statistics_of_the_training_samples():
    images = np.random.default_rng(0).integers(0, 256, (50, 3, 4, 4)).astype(np.uint8)
    mean, spread = channel_statistics(images)
    batches = ImageBatches(images, device=CPU, mean=mean, spread=spread)
    seen = batches.take(torch.arange(50))
    assert seen.mean(dim=(0, 2, 3)).abs().max() < 1e-4
    assert (seen.std(dim=(0, 2, 3), correction=0) - 1).abs().max() < 1e-3
    assert len(batches) == 50


def test_statistics_are_measured_block_by_block():
    images = np.random.default_rng(0).integers(0, 256, (600, 2, 3, 5)).astype(np.uint8)
    images[:, 1] //= 9
    mean, spread = channel_statistics(images)
    np.testing.assert_allclose(mean, images.mean(axis=(0, 2, 3)), rtol=1e-6)
    np.testing.assert_allclose(spread, images.std(axis=(0, 2, 3)), rtol=1e-6)
    requested = []

    class Files:
        def __len__(self):
            return 600

        def read(self, indices):
            requested.append(len(indices))
            return images[indices]

    np.testing.assert_array_equal(channel_statistics(Files()), [mean, spread])
    assert (max(requested), sum(requested)) == (200, 600)
    some = images[np.linspace(0, 599, 7).astype(int)]
    np.testing.assert_allclose(
        channel_statistics(images, most=7)[0], some.mean(axis=(0, 2, 3)), rtol=1e-6
    )


def test_images_that_lie_on_disk_are_read_as_they_are_taken():
    images = np.random.default_rng(0).integers(0, 256, (9, 1, 2, 2)).astype(np.uint8)

    requested = []

    class Files:
        def __len__(self):
            return 9

        def read(self, indices):
            requested.append(indices.tolist())
            return images[indices]

    still = {"mean": np.zeros(1, np.float32), "spread": np.ones(1, np.float32)}
    taken = ImageBatches(Files(), device=CPU, **still).take(torch.tensor([8, 1]))
    np.testing.assert_array_equal(taken.numpy(), images[[8, 1]])
    assert requested == [[8, 1]]
    np.testing.assert_allclose(channel_statistics(Files())[0], images.mean(), rtol=1e-6)


def test_a_constant_column_stays_finite():
    rows = np.array([[1, 5], [3, 5]], np.float32)
    mean, spread = column_statistics(rows)
    taken = TableBatches(rows, device=CPU, mean=mean, spread=spread).take(torch.tensor([1, 0]))
    np.testing.assert_array_equal(taken.numpy(), [[1, 0], [-1, 0]])


def test_a_black_channel_stays_finite():
    _, spread = channel_statistics(np.zeros((2, 1, 2, 2), np.uint8))
    assert spread == pytest.approx([1.0])


@pytest.mark.parametrize("left", [False, True])
def test_a_batch_of_texts_is_as_long_as_its_longest_wherever_they_are_filled_up(left):
    lengths = torch.tensor([2, 5, 3])
    counts = torch.arange(6) < lengths[:, None]
    counts = counts.flip(1) if left else counts
    words = torch.arange(1, 19).reshape(3, 6) * counts
    texts = TextBatches(torch.stack([words, counts], dim=1).int().numpy(), device=CPU)
    for chosen in ([0, 2], [1], [0, 1, 2]):
        batch = texts.take(torch.tensor(chosen))
        assert batch.shape == (len(chosen), 2, lengths[chosen].max())
        for row, sample in zip(batch, chosen, strict=True):
            assert row[0][row[1] > 0].tolist() == words[sample][counts[sample]].tolist()
