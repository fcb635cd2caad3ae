"""Options that make the networks narrow, for tests that do not depend on the width."""

NARROW = {
    "mlp": {"widths": [8]},
    "small-cnn": {"width": 4},
    "resnet18": {"width": 8},
    "resnet32": {"width": 4},
    "resnet50": {"width": 4},
    "densenet121": {"growth": 4},
    "wideresnet28-10": {"widen": 1},
}
