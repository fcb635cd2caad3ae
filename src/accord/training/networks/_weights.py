"""Published weights: from a file into a network, without running a pickle."""

import logging
import pickle
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

from accord.errors import SourceError, missing_extra

_logger = logging.getLogger(__name__)
_WRAPPERS: Final = ("state_dict", "model")  # keys under which training scripts keep the weights
_MANY: Final = 3  # names to list in a message
# The first files of DenseNet say norm.1, which a module can no longer be called.
_DOTTED: Final = re.compile(r"(denselayer\d+\.(?:norm|conv))\.(\d\.)")
# Older than this counter, and better for it: torch fills it in.
_OPTIONAL: Final = "num_batches_tracked"


def load_weights(network: nn.Module, path: Path, *, last_layer: str | None = None) -> bool:
    """Put the weights in a file into a network.

    Where the file tells other classes apart than the network, the last layer stays as it
    is; a line in the log says so.

    Args:
        network: changed in place.
        path: a `.safetensors` file, or one of torch's that holds nothing but weights.
        last_layer: the name of the layer that gives the logits.

    Returns:
        Whether the last layer was left out.

    Raises:
        SourceError: not such a file, or weights of another network.
    """
    found = {_DOTTED.sub(r"\1\2", name): value for name, value in read_weights(path).items()}
    own = network.state_dict()
    kept = _other_classes(found, own, last_layer)
    if kept:
        ours, theirs = (len(weights[f"{last_layer}.weight"]) for weights in (own, found))
        _logger.warning(
            "%s: tells %d classes apart, the network %d; its last layer, %s, starts anew",
            *(path, theirs, ours, last_layer),
        )
        found |= {name: value for name, value in own.items() if name.startswith(f"{last_layer}.")}
    _check_weights(path, found, own)
    network.load_state_dict(found)
    return kept


@contextmanager
def warn_once() -> Iterator[None]:
    """Log what is said of weights once, however many networks start from them.

    Contexts may lie within each other. It serves as a decorator, too.
    """
    once = _Once()
    _logger.addFilter(once)
    try:
        yield
    finally:
        _logger.removeFilter(once)


class _Once(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self._told: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        is_new = text not in self._told
        self._told.add(text)
        return is_new


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read weights by name from a file of safetensors or torch.

    Raises:
        SourceError: no such file, damaged, or a pickle that asks for more than tensors.
    """
    try:
        if path.suffix == ".safetensors":
            return _read_safetensors(path)
        found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise SourceError(
            f"{path}: not a file of weights alone; a pickle that could run code is never "
            "loaded. If you trust it, load it with torch and save its state_dict anew."
        ) from error
    except (OSError, RuntimeError, EOFError, ValueError) as error:
        raise SourceError(f"{path}: cannot be read as weights: {error}") from error
    return _unwrap(path, found)


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ModuleNotFoundError as error:
        raise missing_extra(f"{path}: reading weights", "safetensors", extra="train") from error
    try:
        return load_file(path)
    except SafetensorError as error:
        raise SourceError(f"{path}: cannot be read as weights: {error}") from error


def _unwrap(path: Path, found: Any) -> dict[str, Tensor]:
    for wrapper in _WRAPPERS:
        if isinstance(found, Mapping) and isinstance(found.get(wrapper), Mapping):
            found = found[wrapper]
    if not isinstance(found, Mapping) or not all(isinstance(one, Tensor) for one in found.values()):
        raise SourceError(
            f"{path}: must hold tensors by name, as a state_dict does; got {type(found).__name__}."
        )
    # torch.nn.DataParallel puts this before every name.
    return {str(name).removeprefix("module."): value for name, value in found.items()}


def _other_classes(
    found: Mapping[str, Tensor], own: Mapping[str, Tensor], last_layer: str | None
) -> bool:
    name = f"{last_layer}.weight"
    if name not in found or name not in own:
        return False
    ours, theirs = own[name].shape, found[name].shape
    return theirs[0] != ours[0] and theirs[1:] == ours[1:]


def _check_weights(path: Path, found: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    missing = [name for name in own if name not in found and not name.endswith(_OPTIONAL)]
    unexpected = [name for name in found if name not in own]
    misshapen = [
        f"{name} {tuple(found[name].shape)} where the network has {tuple(own[name].shape)}"
        for name in own
        if name in found and found[name].shape != own[name].shape
    ]
    complaints = {"lacks": missing, "holds unknown": unexpected, "holds": misshapen}
    if any(complaints.values()):
        said = [f"{verb} {_list(names)}" for verb, names in complaints.items() if names]
        raise SourceError(
            f"{path}: does not fit the network: it {'; it '.join(said)}. "
            "Are these weights of another network, another stem or images of other channels?"
        )


def _list(names: Collection[str]) -> str:
    some = ", ".join(list(names)[:_MANY])
    return some if len(names) <= _MANY else f"{some} and {len(names) - _MANY} more"
