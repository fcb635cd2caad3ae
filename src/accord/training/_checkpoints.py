"""Save and load checkpoints and training states as safetensors files."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from accord.errors import SourceError
from accord.store import Folder

STATE: Final = "state.safetensors"


@dataclass(frozen=True)
class State:
    epochs: int
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    loss: dict[str, Tensor]


def capture_state(
    epochs: int, network: nn.Module, optimizer: torch.optim.Optimizer, loss: nn.Module
) -> State:
    """Collect the training state between two epochs, without copying tensors."""
    return State(epochs, network.state_dict(), _flatten(optimizer), loss.state_dict())


def restore(
    state: State, network: nn.Module, optimizer: torch.optim.Optimizer, loss: nn.Module
) -> None:
    network.load_state_dict(state.weights)
    loss.load_state_dict(state.loss)
    _unflatten(optimizer, state.optimizer)


def save_state(folder: Path, state: State) -> None:
    parts = {"weights": state.weights, "optimizer": state.optimizer, "loss": state.loss}
    tensors = {
        f"{part}.{name}": value.detach().cpu().contiguous()
        for part, values in parts.items()
        for name, value in values.items()
    }
    Folder(folder).put(STATE, save(tensors, {"epochs": str(state.epochs)}))


def load_state(folder: Path) -> State | None:
    data = Folder(folder).get(STATE)
    if data is None:
        return None
    cure = "Remove it to train the network from the start."
    tensors, epochs = _load(folder / STATE, data, cure=cure)
    parts: dict[str, dict[str, Tensor]] = {"weights": {}, "optimizer": {}, "loss": {}}
    for key, value in tensors.items():
        part, _, name = key.partition(".")
        parts[part][name] = value
    return State(epochs, **parts)


def save_checkpoint(folder: Path, epoch: int, network: nn.Module) -> None:
    weights = {
        name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()
    }
    Folder(folder).put(f"epoch-{epoch:04d}.safetensors", save(weights, {"epochs": str(epoch + 1)}))


def checkpoints_in(folder: Path) -> dict[int, Path]:
    found = sorted(folder.glob("epoch-*.safetensors"))
    return {int(re.sub(r"\D", "", path.stem)): path for path in found}


def load_checkpoint(path: Path) -> dict[str, Tensor]:
    cure = "Remove it to leave that epoch out."
    return _load(path, path.read_bytes(), cure=cure)[0]


def _load(path: Path, data: bytes, *, cure: str) -> tuple[dict[str, Tensor], int]:
    try:
        size = int.from_bytes(data[:8], "little")
        epochs = int(json.loads(data[8 : 8 + size])["__metadata__"]["epochs"])
        return load(data), epochs
    except (SafetensorError, ValueError, KeyError) as error:
        raise SourceError(f"{path}: cannot be read as a checkpoint ({error}). {cure}") from error


def _flatten(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    state = optimizer.state_dict()["state"]
    return {
        f"{index}.{name}": value if isinstance(value, Tensor) else torch.tensor(value)
        for index, values in state.items()
        for name, value in values.items()
        if value is not None
    }


def _unflatten(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Any]] = {}
    for key, value in tensors.items():
        index, _, name = key.partition(".")
        state.setdefault(int(index), {})[name] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
