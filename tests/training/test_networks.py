"""A network's first weights follow from its seed alone."""

import pytest
import torch

from accord.training.networks import build_small_cnn


def weights(**options):
    network = build_small_cnn(classes=10, **options)
    return torch.cat([parameter.detach().flatten() for parameter in network.parameters()])


def test_same_seed_gives_the_same_weights_and_another_seed_others():
    assert torch.equal(weights(seed=1), weights(seed=1))
    assert not torch.equal(weights(seed=1), weights(seed=2))


def test_building_does_not_depend_on_or_change_the_global_state():
    first = weights(seed=1)
    torch.rand(3)
    before = torch.random.get_rng_state()
    assert torch.equal(weights(seed=1), first)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("size", [2, 7, 8, 32])
@pytest.mark.parametrize("width", [4, 16])
def test_any_size_of_image_gives_one_logit_per_class(size, width):
    network = build_small_cnn(classes=7, channels=3, width=width, seed=0)
    assert network(torch.rand(2, 3, size, size)).shape == (2, 7)
