"""Networks by name."""

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

import torch
from torch import nn

from accord.errors import AccordError, ChoiceError, suggest
from accord.training._randomness import seeded
from accord.training.networks._external import (
    build_timm,
    build_transformers,
    find_function,
    find_last_layer,
)
from accord.training.networks._parts import ImageCheck, Size, check_sizes
from accord.training.networks._weights import load_weights
from accord.training.networks.densenet import DenseNet121
from accord.training.networks.mobilenet import MobileNetV2
from accord.training.networks.resnet import ResNet18, ResNet32, ResNet50, WideResNet
from accord.training.networks.small import MLP, RandomPredictor, SmallCNN

Built = TypeVar("Built")


def call_with_options(
    builder: Callable[..., Built],
    *,
    name: str,
    facts: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Built:
    """Call a builder with the facts that it takes, and with all of the options.

    Raises:
        ChoiceError: an option that the builder does not take, or one that it lacks; or, of a
            builder that comes with Accord, a value that it cannot take.

    >>> def build(*, classes, width=4):
    ...     return classes * width
    >>> call_with_options(build, name="mine", facts={"classes": 2, "size": 8}, options={"width": 3})
    6
    >>> call_with_options(build, name="mine", facts={"classes": 2}, options={"widht": 3})
    Traceback (most recent call last):
    accord.errors.ChoiceError: mine has no option 'widht'. Did you mean 'width'?
    """
    parameters = inspect.signature(builder).parameters
    takes_all = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    known = [one for one in parameters if one not in facts]
    for option in options:
        if not takes_all and option not in known:
            raise ChoiceError(f"{name} has no option {option!r}. {suggest(option, known)}")
    wanted = {fact: value for fact, value in facts.items() if takes_all or fact in parameters}
    try:
        bound = inspect.signature(builder).bind(**wanted, **options)
    except TypeError as error:
        raise ChoiceError(
            f"{name} cannot be built from {', '.join([*wanted, *options])}: {error}. "
            "A builder may take classes, channels and size; anything else must be an option."
        ) from error
    try:
        return builder(*bound.args, **bound.kwargs)
    except (TypeError, ValueError, RuntimeError) as error:
        # Of someone's own builder the whole story is wanted, of ours the option that it names.
        if ":" in name or not options or isinstance(error, AccordError):
            raise
        raise ChoiceError(
            f"{name} cannot be built with {_told(options)}: {error}. "
            "Is a value of the wrong kind, or out of range?"
        ) from error


def _told(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{option}={value!r}" for option, value in options.items())


LIBRARIES: Final = ("timm", "transformers")  # of networks; before a colon, all else is a module
Builder = Callable[..., nn.Module]  # takes classes, channels and size as far as it wants, options

NETWORKS: Final[Mapping[str, Builder]] = MappingProxyType(
    {
        "mlp": MLP,
        "small-cnn": SmallCNN,
        "resnet18": ResNet18,
        "resnet32": ResNet32,
        "resnet50": ResNet50,
        "densenet121": DenseNet121,
        "wideresnet28-10": WideResNet,
        "mobilenetv2": MobileNetV2,
        "random": RandomPredictor,
    }
)


def build(
    name: str,
    *,
    classes: int,
    channels: int,
    size: Size,
    seed: int,
    pretrained: Path | None = None,
    **options: Any,
) -> nn.Module:
    """Build a network by its name; its first weights follow from the seed alone.

    Leaves torch's global random state as it was.

    Args:
        name: one of `NETWORKS`; `timm:NAME` or `transformers:NAME_OR_PATH`, where installed; or
            `module:function`, a builder of your own, imported from the working directory. It
            gets those of classes, channels and size that it takes, and the options.
        classes: how many classes to tell apart.
        channels: how many channels an image has, or columns a table.
        size: the image's rows and columns, one number for a square; 1 for a table.
        seed: where the first weights come from.
        pretrained: a file of weights to start from; never a pickle that could run code.
        options: the network's own, such as `width`.

    Raises:
        ChoiceError: no such network or option, or images that are too small for it.
        ExtraMissing: the name asks for a library that is not installed.
        SourceError: the file of weights cannot be read, or is another network's.

    >>> network = build("resnet18", classes=10, channels=3, size=32, seed=0, width=8)
    >>> network(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    >>> build("resnet19", classes=10, channels=3, size=32, seed=0)
    Traceback (most recent call last):
    accord.errors.ChoiceError: no network is called 'resnet19'. Did you mean 'resnet18'?
    """
    check_sizes(classes=classes, channels=channels, size=size)
    builder = find_builder(name)
    facts = {"classes": classes, "channels": channels, "size": size}
    with seeded(seed):
        network = call_with_options(builder, name=name, facts=facts, options=options)
    if not isinstance(network, nn.Module):
        raise ChoiceError(f"{name} must return a torch.nn.Module; got {type(network).__name__}.")
    if name in NETWORKS:
        _check_weights(network, name=name)
        _finish(network, name=name, channels=channels, size=size)
    if pretrained is not None:
        _start_from(network, pretrained, name=name)
    return network


def find_builder(name: str) -> Builder:
    """Return what builds the network of this name; an error offers the nearest."""
    if name in NETWORKS:
        return NETWORKS[name]
    library, colon, rest = name.partition(":")
    if not colon:
        raise ChoiceError(f"no network is called {name!r}. {suggest(name, NETWORKS)}")
    if library == "timm":
        return functools.partial(build_timm, rest)
    if library == "transformers":
        return functools.partial(build_transformers, rest)
    return find_function(name)


def is_user_code(name: str) -> bool:
    """Tell whether a name is that of a user's own builder.

    >>> [is_user_code(name) for name in ("mine:resnet", "timm:resnet18", "resnet18")]
    [True, False, False]
    """
    library, colon, _ = name.partition(":")
    return bool(colon) and library not in LIBRARIES


def _check_weights(network: nn.Module, *, name: str) -> None:
    empty = next((one for one, value in network.named_parameters() if not value.numel()), None)
    if empty is not None:
        raise ChoiceError(
            f"{name} would have no weights in {empty!r}: every width must be at least 1."
        )


def _finish(network: nn.Module, *, name: str, channels: int, size: Size) -> None:
    # Channels last: a fifth faster to train on one core, measured on 8 by 8 images.
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    smallest = getattr(network, "smallest", None)
    if isinstance(smallest, int):
        check = ImageCheck(name, channels, smallest)
        check.check_size(size)
        network.register_forward_pre_hook(check)


def _start_from(network: nn.Module, path: Path, *, name: str) -> None:
    if name.startswith("transformers:"):
        raise ChoiceError(
            f"{name} brings its own weights: it takes no other file, {path}. "
            "Name the folder of the weights instead."
        )
    last_layer = getattr(network, "last_layer", None) or find_last_layer(network)
    load_weights(network, path, last_layer=last_layer)
