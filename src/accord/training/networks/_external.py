"""Build networks from timm, transformers and user code."""

import importlib
import sys
from collections.abc import Callable, Mapping
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
    """Build an untrained timm network.

    The options are passed to `timm.create_model`. Networks that depend on the image size take it
    as `img_size`. Published weights are loaded from a file.
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
    config = getattr(network, "default_cfg", None) or {}
    name = config.get("classifier") if isinstance(config, dict) else None
    return name if isinstance(name, str) else None


PARTS: Final = ("input_ids", "attention_mask", "token_type_ids")
_KINDS: Final = {
    "text": "AutoModelForSequenceClassification",
    "image": "AutoModelForImageClassification",
}


class TransformersNetwork(nn.Module):
    """Wrapper for transformers models that returns only the logits.

    Args:
        network: as `from_pretrained` returns it.
        padding: the padding token, hidden from attention.
    """

    def __init__(self, network: nn.Module, *, padding: int) -> None:
        super().__init__()
        self.network = network
        self.padding = padding

    def forward(self, inputs: Tensor | Mapping[str, Tensor]) -> Tensor:
        """Compute logits of shape (sample, class).

        Args:
            inputs: tokens (sample, token); or (sample, part, token) with tokens, attention mask
                and token types; or images (sample, channel, row, column); or arguments by name.
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
    """Build a transformers classifier from a folder or a name on the hub.

    If the file has another number of classes, the head is new. With `scratch`, only the
    architecture is used, with random weights.
    """
    if task not in _KINDS:
        raise ChoiceError(f"task must be one of {', '.join(_KINDS)}; got {task!r}.")
    transformers = import_transformers(path)
    kind = getattr(transformers, _KINDS[task])
    try:
        config = transformers.AutoConfig.from_pretrained(path, num_labels=classes)
        if scratch:
            network = kind.from_config(config)
        else:
            network = kind.from_pretrained(path, config=config, ignore_mismatched_sizes=True)
    except (OSError, ValueError) as error:
        raise ChoiceError(
            f"transformers:{path} cannot be loaded as a network for {task}s: {error}. Is it a "
            "folder written by save_pretrained, or a name on the hub?"
        ) from error
    padding = getattr(config, "pad_token_id", None)
    # from_pretrained returns the precision of the file, in evaluation mode.
    return TransformersNetwork(network.float().train(), padding=0 if padding is None else padding)


def import_transformers(path: str) -> Any:
    try:
        return importlib.import_module("transformers")
    except ImportError as error:
        raise missing_extra(
            f"transformers:{path}", "transformers", extra="transformers", cause=error
        ) from error


def find_function(name: str) -> Callable[..., Any]:
    """Import a function from a module, which may be in the working directory."""
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
            "Name your own network as module:function, without .py and slashes."
        )
    here = str(Path.cwd())
    sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # A module that the user's module cannot import is another error: let it pass.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise ChoiceError(
            f"{name}: no module {module_name!r} in {here} or among installed packages. "
            "Start from the folder that contains it."
        ) from error
    finally:
        sys.path.remove(here)
