"""Networks with their weights of some epoch, asked about samples."""

import json
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from accord.data.dataset import Inputs
from accord.errors import PredictionError, SourceError
from accord.inference.saved_run import SavedRun
from accord.training.batches import Batches
from accord.training.checkpoints import load_checkpoint
from accord.training.loop import predict_probabilities
from accord.training.material import show
from accord.training.members import build_network
from accord.training.networks.registry import NETWORKS
from accord.training.seeds import Draws
from accord.training.settings import choose_device, recipe_for
from accord.training.spec import TRANSFORMERS, Member


class Asker:
    """Loads one checkpoint after the other and asks it.

    Networks of the same architecture share one place in memory.
    """

    def __init__(self, run: SavedRun) -> None:
        self._run = run
        self._device = choose_device()
        self._built: dict[str, nn.Module] = {}

    def show(self, inputs: Inputs) -> "Shown":
        """Return samples as the networks see them, scaled as they were trained."""
        return Shown(inputs, self._run, self._device)

    def ask(
        self, member: Member, epoch: int, shown: "Shown", chosen: NDArray[np.intp] | None = None
    ) -> NDArray[np.float32]:
        """Return probabilities (member, sample, class) of all samples, or of some.

        Raises:
            SourceError: the checkpoint is damaged, or of another network.
            PredictionError: the network's answer is not a number.
        """
        path = self._run.checkpoint(member, epoch)
        network = self._load(member, load_checkpoint(path), str(path))
        samples = shown.to(member)
        tables = predict_probabilities(
            network,
            samples if chosen is None else Chosen(samples, chosen),
            bfloat16=recipe_for(self._run.spec, member, self._device).bfloat16,
        )
        if not np.isfinite(tables).all():
            raise PredictionError(
                f"{path}: the network's probabilities are not finite. Has it diverged? "
                "Remove the file, and that epoch is left out of all networks."
            )
        return tables.reshape(-1, *tables.shape[-2:])

    def _load(self, member: Member, weights: dict[str, Tensor], where: str) -> nn.Module:
        key = _architecture(member)
        if key not in self._built:
            train = self._run.spec.train.model_copy(update={"pretrained": None})
            spec = self._run.spec.model_copy(update={"train": train})
            shape = _without_weights(member)
            self._built[key] = build_network(spec, shape, self._run.traits).to(self._device)
        try:
            self._built[key].load_state_dict(weights)
        except RuntimeError as error:
            raise SourceError(
                f"{where}: holds the weights of another network than {member.network}: {error}"
            ) from error
        return self._built[key]


def _without_weights(member: Member) -> Member:
    """Return a network of transformers as its shape alone: the checkpoint has every weight."""
    if not member.network.startswith(TRANSFORMERS):
        return member
    return member.model_copy(update={"options": {**member.options, "scratch": True}})


def _architecture(member: Member) -> str:
    about: list[Any] = [member.network, member.options, member.members]
    known = member.network in NETWORKS or member.network.startswith(TRANSFORMERS)
    if not known:  # a builder of one's own may keep what it drew elsewhere
        about.append(member.seed)
    return json.dumps(about, sort_keys=True, default=str)


class Shown:
    """Some samples as a run's networks see them; texts are cut once for each tokenizer."""

    def __init__(self, inputs: Inputs, run: SavedRun, device: torch.device) -> None:
        self._inputs, self._run, self._device = inputs, run, device
        self._batches: dict[str, Batches] = {}

    def to(self, member: Member) -> Batches:
        """Return the samples as one network sees them."""
        traits = self._run.traits
        name = self._run.spec.place_network(member.network) if traits.kind == "text" else ""
        if name not in self._batches:
            self._batches[name] = show(
                self._inputs,
                traits.kind,
                traits.scale,
                device=self._device,
                network=name,
                length=self._run.spec.train.length,
            )
        return self._batches[name]


class Chosen:
    """Some of other samples, counted anew from 0."""

    def __init__(self, samples: Batches, positions: NDArray[np.intp]) -> None:
        self.device = samples.device
        self._samples, self._positions = samples, torch.from_numpy(positions)

    def __len__(self) -> int:
        return len(self._positions)

    def take(self, chosen: Tensor, draws: Draws | None = None) -> Tensor:
        """Return some of them."""
        return self._samples.take(self._positions[chosen], draws)
