"""Load published weights into a network without running pickled code."""

import logging
import pickle
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

from accord.errors import SourceError, listed, missing_extra

_logger = logging.getLogger(__name__)
_WRAPPERS: Final = ("state_dict", "model")  # keys under which training scripts keep the weights
_MANY: Final = 3  # names shown in a message
# Early files of DenseNet use names such as norm.1, which modules can no longer have.
_DOTTED: Final = re.compile(r"(denselayer\d+\.(?:norm|conv))\.(\d\.)")
# Files older than this counter lack it; torch fills it in.
_OPTIONAL: Final = "num_batches_tracked"


def load_weights(network: nn.Module, path: Path, *, last_layer: str | None = None) -> bool:
    """Load the weights of a file into a network.

    If the file has another number of classes, the last layer keeps its weights and a warning is
    logged.

    Args:
        network: changed in place.
        path: a `.safetensors` file, or a file of torch that holds only weights.
        last_layer: the name of the layer that returns the logits.

    Returns:
        Whether the last layer was left out.

    Raises:
        SourceError: not such a file, or the weights of another network.
    """
    found = {_DOTTED.sub(r"\1\2", name): value for name, value in read_weights(path).items()}
    own = network.state_dict()
    kept = _other_classes(found, own, last_layer)
    if kept:
        ours, theirs = (len(weights[f"{last_layer}.weight"]) for weights in (own, found))
        _logger.warning(
            "%s has %d classes, the network %d: its last layer, %s, keeps its initial weights",
            *(path, theirs, ours, last_layer),
        )
        found |= {name: value for name, value in own.items() if name.startswith(f"{last_layer}.")}
    _check_weights(path, found, own)
    network.load_state_dict(found)
    return kept


@contextmanager
def warn_once() -> Iterator[None]:
    """Context manager and decorator that logs each warning on weights only once."""
    once = _Once()
    _logger.addFilter(once)
    try:
        yield
    finally:
        _logger.removeFilter(once)


class _Once(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        is_new = text not in self._seen
        self._seen.add(text)
        return is_new


def read_weights(path: Path) -> dict[str, Tensor]:
    try:
        if path.suffix == ".safetensors":
            return _read_safetensors(path)
        found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise SourceError(
            f"{path}: holds more than weights; a pickle that could run code is never loaded. "
            "If you trust it, load it with torch and save its state_dict to a new file."
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
            f"{path}: must hold tensors by name, like a state_dict; got {type(found).__name__}."
        )
    # torch.nn.DataParallel adds this prefix.
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
    problems = {"lacks": missing, "holds unknown": unexpected, "holds": misshapen}
    if any(problems.values()):
        parts = [f"{verb} {listed(names, most=_MANY)}" for verb, names in problems.items() if names]
        raise SourceError(
            f"{path}: does not fit the network: it {'; it '.join(parts)}. "
            "Are these the weights of another network, stem or number of channels?"
        )
