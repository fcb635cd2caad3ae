"""Evaluate checkpoints on blocks of samples."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from accord.data import Inputs, Samples
from accord.errors import PredictionError, SourceError
from accord.inference._checkpoints_of_run import RunCheckpoints
from accord.kernels._blocks import spans
from accord.store import CountProgress
from accord.training import NetworkSpec
from accord.training._batches import Batches
from accord.training._build_networks import build_network
from accord.training._checkpoints import load_checkpoint
from accord.training._hardware import choose_device, uses_bfloat16
from accord.training._loop import predict_probabilities
from accord.training._prepared_data import make_batches
from accord.training._spec import TRANSFORMERS
from accord.training.networks._registry import NETWORKS

CELLS_AT_ONCE: Final = 2**24  # of votes, (sample, class): 128 MiB
BYTES_AT_ONCE: Final = 2**30  # of samples


@dataclass(frozen=True)
class Checkpoint:
    """Checkpoint of a network, or of all members of a BatchEnsemble, at an epoch."""

    network: NetworkSpec
    epoch: int  # of training
    position: tuple[int, int]  # in the votes: the (first) network and the epoch
    weight: int = 1  # of each vote


class BlockVotes(Protocol):
    def pending(self, checkpoint: Checkpoint) -> NDArray[np.intp]:
        """Get the samples of the block that the checkpoint must be evaluated on."""

    def add(self, checkpoint: Checkpoint, probabilities: NDArray[np.float32]) -> None:
        """Add predictions of shape (member, pending sample, class)."""


Votes = TypeVar("Votes", bound=BlockVotes)


def evaluate_checkpoints(
    checkpoints: RunCheckpoints,
    samples: Samples,
    order: Sequence[Checkpoint],
    start: Callable[[slice], Votes],
    *,
    whole: bool = False,
    progress: CountProgress | None = None,
) -> list[Votes]:
    """Evaluate checkpoints on all samples and collect the votes of each block.

    Each checkpoint is loaded once per block, and not at all once the block is settled. `start`
    returns the empty votes of a block of consecutive samples. `whole` makes all samples one block.
    `progress` is called with the evaluations done and in all, counted by sample.
    """
    evaluator = Evaluator(checkpoints)
    classes, size = checkpoints.schema.classes, samples.sample_bytes
    width = max(1, min(CELLS_AT_ONCE // classes, BYTES_AT_ONCE // size))
    blocks, done = [], 0
    for span in spans(len(samples), len(samples) if whole else width):
        block = range(*span.indices(len(samples)))
        votes = start(span)
        # Image files that do not fit into memory are decoded again for each checkpoint.
        fits = len(block) * size <= BYTES_AT_ONCE
        evaluator.begin(samples.part(span) if fits else samples.inputs)
        for checkpoint in order:
            pending = votes.pending(checkpoint)
            if len(pending):
                votes.add(checkpoint, evaluator.predict(checkpoint, pending))
            done += len(block)
            if progress is not None:
                progress(done, len(samples) * len(order))
        blocks.append(votes)
    return blocks


class Evaluator:
    """Evaluator of checkpoints on samples.

    Networks of the same architecture share one module, and texts are tokenized once for each
    tokenizer.
    """

    def __init__(self, checkpoints: RunCheckpoints) -> None:
        self._checkpoints, self._spec = checkpoints, checkpoints.run.spec
        self._device = choose_device()
        self._modules: dict[str, nn.Module] = {}
        self._inputs: Inputs = ()
        self._batches: dict[str, Batches] = {}

    def begin(self, inputs: Inputs) -> None:
        self._inputs, self._batches = inputs, {}

    def predict(self, checkpoint: Checkpoint, samples: NDArray[np.intp]) -> NDArray[np.float32]:
        """Predict probabilities of shape (member, sample, class) for selected samples."""
        path = self._checkpoints.run.checkpoints(checkpoint.network)[checkpoint.epoch]
        module = self._load(checkpoint.network, load_checkpoint(path), str(path))
        probabilities = predict_probabilities(
            module,
            self.batches(checkpoint.network),
            chosen=torch.from_numpy(samples),
            bfloat16=uses_bfloat16(self._spec, self._device),
        )
        if not np.isfinite(probabilities).all():
            raise PredictionError(
                f"{path}: the network's probabilities are not finite. Has its training diverged? "
                "Remove the file to leave that epoch out for all networks."
            )
        return probabilities.reshape(-1, *probabilities.shape[-2:])

    def batches(self, network: NetworkSpec) -> Batches:
        spec, schema = self._spec, self._checkpoints.schema
        tokenizer = spec.resolve_network(network.network) if schema.kind == "text" else ""
        if tokenizer not in self._batches:
            self._batches[tokenizer] = make_batches(
                self._inputs,
                schema.kind,
                schema.scale,
                device=self._device,
                network=tokenizer,
                length=spec.train.length,
            )
        return self._batches[tokenizer]

    def _load(self, network: NetworkSpec, weights: dict[str, Tensor], where: str) -> nn.Module:
        key = _architecture(network)
        if key not in self._modules:
            # The checkpoint has every weight: the pretrained ones need not exist any more.
            spec = self._spec.change(train={"pretrained": None})
            if network.network.startswith(TRANSFORMERS):
                options = {**network.options, "scratch": True}
                network = network.model_copy(update={"options": options})
            self._modules[key] = build_network(spec, network, self._checkpoints.schema).to(
                self._device
            )
        try:
            self._modules[key].load_state_dict(weights)
        except RuntimeError as error:
            raise SourceError(
                f"{where}: holds the weights of another network than {network.network}: {error}"
            ) from error
        return self._modules[key]


def _architecture(network: NetworkSpec) -> str:
    key = [network.network, network.options, network.members]
    if network.network not in NETWORKS and not network.network.startswith(TRANSFORMERS):
        key.append(network.seed)  # a user's builder may draw more than its weights
    return json.dumps(key, sort_keys=True, default=str)
