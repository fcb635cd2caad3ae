import pytest
import torch
from narrow_networks import IMAGENET, SMALL, TRAINABLE, build_narrow, without_storage
from torch import nn

from accord.errors import ChoiceError, PredictionError


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "densenet121", "mobilenetv2"])
def test_the_stem_follows_from_the_size_unless_it_is_set(name):
    def first_stride(**options):
        network = without_storage(name, **options)
        return next(one.stride for one in network.modules() if isinstance(one, nn.Conv2d))

    assert first_stride(**SMALL | {"size": 64}) == (1, 1)
    assert first_stride(**SMALL | {"size": 65}) == (2, 2)
    assert first_stride(**SMALL | {"size": (32, 224)}) == (2, 2)
    assert first_stride(**IMAGENET, stem="small") == (1, 1)
    assert first_stride(**SMALL, stem="imagenet") == (2, 2)


def test_size_too_small_for_a_network_is_refused_when_it_is_built():
    with pytest.raises(ChoiceError, match=r"densenet121 needs .* 8 by 8 pixels; got 9 by 7\. Enl"):
        build_narrow("densenet121", size=(9, 7))


@pytest.mark.parametrize("shape", [(2, 1, 8, 8), (2, 8, 8, 3), (3, 8, 8), (2, 3, 8), (2, 3, 1, 8)])
def test_images_of_the_wrong_shape_are_refused(shape):
    network = build_narrow("small-cnn")
    with pytest.raises(PredictionError, match=r"small-cnn takes .*, 3, row.* got \(.*channel axis"):
        network(torch.rand(shape))


@pytest.mark.parametrize("name", [name for name in TRAINABLE if name != "mlp"])
def test_every_network_for_images_checks_them(name):
    with pytest.raises(PredictionError, match=f"{name} takes images .*got .2, 5, 8, 8"):
        build_narrow(name)(torch.rand(2, 5, 8, 8))


@pytest.mark.parametrize("wrong", [{"classes": 0}, {"channels": 0}, {"size": 0}, {"size": (8, 0)}])
def test_sizes_for_which_there_is_no_network_are_refused(wrong):
    with pytest.raises(ChoiceError, match="at least 1 class, 1 channel and 1 pixel; got classes="):
        build_narrow("resnet18", **wrong)
