import pytest
import torch
from torch import nn

from accord.errors import PredictionError
from accord.training.networks import build


def test_small_cnn_starts_as_it_always_did():
    """The demo's published numbers hang on these bits."""
    first = build("small-cnn", classes=10, channels=1, size=8, seed=0).state_dict()
    wanted = [-0.0024956069, 0.1788145304, -0.2743483782]  # measured with torch 2.13
    torch.testing.assert_close(
        first["features.0.weight"].flatten()[:3], torch.tensor(wanted), atol=1e-6, rtol=0
    )


def test_mlp_takes_tables_and_images_of_its_size_alone():
    network = build("mlp", classes=4, channels=3, size=2, seed=0)
    images = torch.rand(5, 3, 2, 2)
    assert torch.equal(network(images), network(images.flatten(1)))
    assert build("mlp", classes=4, channels=9, size=1, seed=0)(torch.rand(5, 9)).shape == (5, 4)
    with pytest.raises(PredictionError, match=r"12 numbers per sample; got 27 from .*3, 3"):
        network(torch.rand(5, 3, 3, 3))


def test_mlp_bends_between_its_layers():
    network = build("mlp", classes=4, channels=3, size=1, seed=0, widths=[6, 5])
    rows = torch.randn(9, 3)
    first, second, last = (one for one in network.modules() if isinstance(one, nn.Linear))
    wanted = last(second(first(rows).clamp(min=0)).clamp(min=0))
    assert torch.equal(network(rows), wanted)


def test_mlp_without_hidden_layers_is_linear():
    network = build("mlp", classes=4, channels=3, size=1, seed=0, widths=[])
    assert [tuple(one.shape) for one in network.parameters()] == [(4, 3), (4,)]


SAMPLES = torch.randint(0, 2, (4000, 1, 8, 8), generator=torch.Generator().manual_seed(0)).float()


def guess(samples=SAMPLES, *, seed=0, epoch=0, classes=10):
    network = build("random", classes=classes, channels=1, size=8, seed=seed)
    network.start_epoch(epoch)
    return network(samples).argmax(dim=1)


def test_guesses_are_uniform_even_on_samples_of_zeros_and_ones():
    counts = guess().bincount(minlength=10)
    assert (counts - 400).abs().max() < 4 * 19  # one standard deviation is 19


@pytest.mark.parametrize("other", [{"epoch": 1}, {"seed": 1}])
def test_another_epoch_or_seed_gives_independent_guesses(other):
    same = (guess() == guess(**other)).sum()
    assert abs(same - 400) < 4 * 19


def test_guesses_depend_on_neither_batch_nor_layout_nor_history():
    again = guess(SAMPLES.contiguous(memory_format=torch.channels_last).flip(0)).flip(0)
    parts = torch.cat([guess(part) for part in SAMPLES.split(999)])
    assert torch.equal(again, guess())
    assert torch.equal(parts, guess())
    network = build("random", classes=10, channels=1, size=8, seed=0)
    network.start_epoch(7)
    network.start_epoch(0)
    assert torch.equal(network(SAMPLES).argmax(dim=1), guess())


def test_one_pixel_decides():
    samples = torch.zeros(64, 64).fill_diagonal_(1)
    assert len(guess(samples, classes=1000).unique()) > 50


def test_guesser_is_sure_and_has_nothing_to_train():
    network = build("random", classes=10, channels=1, size=8, seed=0)
    assert not network.trainable
    assert network(SAMPLES).softmax(dim=1).amax(dim=1).min() > 0.9999


def test_state_of_the_guesser_holds_its_seed_and_epoch():
    first, second = (build("random", classes=10, channels=1, size=8, seed=seed) for seed in (1, 2))
    first.start_epoch(5)
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(SAMPLES), second(SAMPLES))
