"""Options that make the networks narrow, for tests that do not depend on the width."""

import torch

from accord.training.networks import NETWORKS, build

NARROW = {
    "mlp": {"widths": [8]},
    "small-cnn": {"width": 4},
    "resnet18": {"width": 8},
    "resnet32": {"width": 4},
    "resnet50": {"width": 4},
    "densenet121": {"growth": 4},
    "wideresnet28-10": {"widen": 1},
}

SMALL = {"classes": 10, "channels": 3, "size": 32}
IMAGENET = {"classes": 1000, "channels": 3, "size": 224}
TRAINABLE = [name for name in NETWORKS if name != "random"]


def build_narrow(name, *, classes=10, channels=3, size=8, seed=0, **options):
    sizes = {"classes": classes, "channels": channels, "size": size, "seed": seed}
    return build(name, **sizes, **NARROW.get(name, {}), **options)


def without_storage(name, **sizes):
    with torch.device("meta"):
        return build(name, seed=0, **sizes)
