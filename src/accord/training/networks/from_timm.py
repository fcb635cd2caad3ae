"""Networks of timm, where it is installed."""

import importlib
from typing import Any

from torch import nn

from accord.errors import ChoiceError, ExtraMissing, suggest
from accord.training.networks.shapes import Size


def build_timm(
    name: str,
    *,
    classes: int,
    channels: int,
    size: Size,  # noqa: ARG001
    **options: Any,
) -> nn.Module:
    """Build the network that timm knows by this name, untrained.

    The options go to `timm.create_model`: a network that must know the size of the images
    takes it as `img_size`, others would refuse it. Give published weights as a file.
    """
    try:
        timm = importlib.import_module("timm")
    except ImportError as error:
        raise ExtraMissing(
            f"timm:{name} needs timm, which cannot be imported here: {error}. "
            "To install it, with what it needs: pip install timm"
        ) from error
    if not timm.is_model(name):
        raise ChoiceError(f"timm has no network {name!r}. {suggest(name, timm.list_models())}")
    network: nn.Module = timm.create_model(
        name, pretrained=False, num_classes=classes, in_chans=channels, **options
    )
    return network


def find_last_layer(network: nn.Module) -> str | None:
    """Return the name that timm gives to the layer of the classes, if it gives one."""
    facts = getattr(network, "default_cfg", None) or {}
    name = facts.get("classifier") if isinstance(facts, dict) else None
    return name if isinstance(name, str) else None
