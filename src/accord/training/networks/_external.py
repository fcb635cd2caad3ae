"""A user's own network, named as `module:function`."""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

from torch import Tensor, nn

from accord.errors import ChoiceError, PredictionError, missing_extra, suggest
from accord.training.networks._parts import Size


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
        raise missing_extra(f"timm:{name}", "timm", cause=error) from error
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


PARTS: Final = ("input_ids", "attention_mask", "token_type_ids")
_KINDS: Final = {
    "text": "AutoModelForSequenceClassification",
    "image": "AutoModelForImageClassification",
}


class TransformersNetwork(nn.Module):
    """Returns the logits of a network of transformers, whatever else that returns.

    Args:
        network: what `from_pretrained` gave.
        padding: the token that fills up a text, hidden from the network's attention.
    """

    def __init__(self, network: nn.Module, *, padding: int) -> None:
        super().__init__()
        self.network = network
        self.padding = padding

    def forward(self, inputs: Tensor | Mapping[str, Tensor]) -> Tensor:
        """Return the logits, (sample, class).

        Args:
            inputs: tokens (sample, token); or (sample, part, token) with the token, whether it
                counts, and which of two texts it belongs to; or images (sample, channel, row,
                column); or what the network takes, by name.
        """
        logits: Tensor = self.network(**self._name(inputs)).logits
        return logits

    def _name(self, inputs: Tensor | Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        if not isinstance(inputs, Tensor):
            return inputs
        if inputs.is_floating_point():
            return {"pixel_values": inputs}
        if inputs.ndim == 2:
            return {"input_ids": inputs, "attention_mask": (inputs != self.padding).long()}
        if inputs.ndim == 3 and inputs.shape[1] <= len(PARTS):
            return dict(zip(PARTS, inputs.unbind(dim=1), strict=False))
        raise PredictionError(
            "texts must be tokens (sample, token), or (sample, part, token) with up to "
            f"{len(PARTS)} parts ({', '.join(PARTS)}); got {tuple(inputs.shape)}."
        )


def build_transformers(
    path: str, *, classes: int, task: Literal["text", "image"] = "text", scratch: bool = False
) -> TransformersNetwork:
    """Build a classifier on the network that a folder, or a name on the hub, holds.

    Args:
        path: a folder that `save_pretrained` wrote, or a name on the hub.
        classes: how many classes to tell apart; the head is new where theirs differ.
        task: what the network reads.
        scratch: whether to take the shape alone, and draw all weights.
    """
    if task not in _KINDS:
        raise ChoiceError(f"task must be one of {', '.join(_KINDS)}; got {task!r}.")
    transformers = _import_transformers(path)
    kind = getattr(transformers, _KINDS[task])
    try:
        facts = transformers.AutoConfig.from_pretrained(path, num_labels=classes)
        if scratch:
            network = kind.from_config(facts)
        else:
            network = kind.from_pretrained(path, config=facts, ignore_mismatched_sizes=True)
    except (OSError, ValueError) as error:
        raise ChoiceError(
            f"transformers:{path} cannot be loaded as a network for {task}s. Is it a folder that "
            f"save_pretrained wrote, or a name that the hub can give? transformers says: {error}"
        ) from error
    padding = getattr(facts, "pad_token_id", None)
    # In float32, whatever the file's precision, and ready to train: it comes ready to predict.
    return TransformersNetwork(network.float().train(), padding=0 if padding is None else padding)


def _import_transformers(path: str) -> Any:
    try:
        return importlib.import_module("transformers")
    except ImportError as error:
        raise missing_extra(
            f"transformers:{path}", "transformers", extra="transformers", cause=error
        ) from error


def find_function(name: str) -> Callable[..., Any]:
    """Import a function; its module may lie in the working directory.

    Raises:
        ChoiceError: no such module, no such function, or not a function. What the module
            itself raises comes through as it is.
    """
    module_name, _, function_name = name.partition(":")
    module = _import_module(name, module_name)
    function: Callable[..., Any] | None = getattr(module, function_name, None)
    if not callable(function):
        functions = [one for one, value in vars(module).items() if callable(value)]
        raise ChoiceError(
            f"{name}: {module.__file__} has no function {function_name!r}. "
            f"{suggest(function_name, functions)}"
        )
    return function


def _import_module(name: str, module_name: str) -> ModuleType:
    if not all(part.isidentifier() for part in module_name.split(".")):
        raise ChoiceError(
            f"{name}: {module_name!r} is not the name of a module. "
            "A network of your own is named as module:function, without .py and slashes."
        )
    try:
        with _working_directory_first():
            return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # A module that the user's own one lacks is another matter: let it through.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise ChoiceError(
            f"{name}: there is no module {module_name!r} in {Path.cwd()}, nor installed. "
            "Start from the folder in which it lies."
        ) from error


@contextmanager
def _working_directory_first() -> Iterator[None]:
    here = str(Path.cwd())
    sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(here)
