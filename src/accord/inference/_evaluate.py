"""Ask a run's networks and keep every vote in a record, for any rule to read."""

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from accord._recorder import Recorder
from accord.data import Samples
from accord.data._dataset import Inputs
from accord.data._images import ImageFiles
from accord.errors import ChoiceError, PredictionError, RecordMismatch, SourceError
from accord.inference._checkpoints_of_run import SavedRun
from accord.inference._early_exit import Ballot, Exit, join, order_voters
from accord.kernels._blocks import spans
from accord.kernels._votes import WEIGHT_BITS
from accord.rules import Prediction, Rule
from accord.rules.max_agreement import MaxAgreement
from accord.rules.weighted_agreement import WeightedAgreement
from accord.store import describe
from accord.store._inspect import Description
from accord.store._storage import CountProgress
from accord.training._batches import Batches
from accord.training._build import build_network
from accord.training._checkpoints import load_checkpoint
from accord.training._loop import predict_probabilities
from accord.training._prepared_data import make_batches
from accord.training._randomness import Draws
from accord.training._settings import choose_device, recipe_for
from accord.training.networks._registry import NETWORKS
from accord.training.spec import TRANSFORMERS, NetworkSpec


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
        self,
        member: NetworkSpec,
        epoch: int,
        shown: "Shown",
        chosen: NDArray[np.intp] | None = None,
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

    def _load(self, member: NetworkSpec, weights: dict[str, Tensor], where: str) -> nn.Module:
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


def _without_weights(member: NetworkSpec) -> NetworkSpec:
    """Return a network of transformers as its shape alone: the checkpoint has every weight."""
    if not member.network.startswith(TRANSFORMERS):
        return member
    return member.model_copy(update={"options": {**member.options, "scratch": True}})


def _architecture(member: NetworkSpec) -> str:
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

    def to(self, member: NetworkSpec) -> Batches:
        """Return the samples as one network sees them."""
        traits = self._run.traits
        name = self._run.spec.resolve_network(member.network) if traits.kind == "text" else ""
        if name not in self._batches:
            self._batches[name] = make_batches(
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


CELLS_AT_ONCE: Final = 2**24  # of votes, (sample, class): 128 MiB
BYTES_AT_ONCE: Final = 2**30  # of samples


@dataclass(frozen=True)
class Voter:
    """One checkpoint: a network, or all members of a BatchEnsemble, at one epoch."""

    member: NetworkSpec
    epoch: int
    weight: int  # of each vote


def can_count(rule: Rule) -> bool:
    """Tell whether a rule only adds up votes whose weights are known beforehand."""
    known = type(rule) is WeightedAgreement and rule.weights is not None
    return known or type(rule) is MaxAgreement


def ask_and_count(
    run: SavedRun,
    samples: Samples,
    exit: Exit,  # noqa: A002
    *,
    rule: Rule,
    seed: int = 0,
    progress: CountProgress | None = None,
) -> tuple[Prediction, NDArray[np.int64]]:
    """Predict, and tell how many votes each sample took.

    Samples are taken in blocks, so that memory stays bounded; each checkpoint is loaded once for
    a block, and asked only about samples that are still open.

    Raises:
        ChoiceError: the exit asks for equal votes, or single ones, and the run has others.
    """
    voters = list_voters(run, exit, rule=rule, seed=seed)
    counted = _Count(run, voters, exit, samples, progress)
    ballots = [counted.block(span) for span in spans(len(samples), _width(run, samples))]
    return join(ballots)


def list_voters(run: SavedRun, exit: Exit, *, rule: Rule, seed: int) -> list[Voter]:  # noqa: A002
    """Return the checkpoints in the order to ask them.

    Raises:
        ChoiceError: the exit needs equal votes, or single ones, and gets others.
    """
    _check_fit(run, exit, rule)
    weights = _weights(run, rule)
    voters = [
        Voter(member, epoch, weight)
        for member in run.members
        for epoch, weight in zip(run.epochs, weights, strict=True)
    ]
    rows = None if run.members[0].members > 1 else run.rows()
    order = order_voters(rows, (len(run.members), len(run.epochs)), exit, seed=seed)
    return [voters[position] for position in order]


def _check_fit(run: SavedRun, exit: Exit, rule: Rule) -> None:  # noqa: A002
    if exit.shuffled and any(member.members > 1 for member in run.members):
        raise ChoiceError(
            "a BatchEnsemble's members vote together, so that its votes cannot be asked for in an "
            "order drawn by chance, on which a risk is founded. Use --exit exact"
        )
    if not exit.weighted and isinstance(rule, WeightedAgreement):
        raise ChoiceError(
            f"a risk is founded on votes that count the same, and those of {rule.name} do not. "
            "Use --exit exact"
        )


def _weights(run: SavedRun, rule: Rule) -> list[int]:
    if not isinstance(rule, WeightedAgreement) or rule.weights is None:
        return [1] * len(run.epochs)
    units = np.ldexp(rule.weights, WEIGHT_BITS)
    if (units != np.rint(units)).any():
        raise ChoiceError(
            f"{rule.name}: weights must be whole multiples of 2**-{WEIGHT_BITS}, as `accord fit` "
            "finds them, so that their sums are exact"
        )
    return [int(unit) for unit in units]


def _width(run: SavedRun, samples: Samples) -> int:
    return max(1, min(CELLS_AT_ONCE // run.traits.classes, BYTES_AT_ONCE // samples.sample_bytes))


class _Count:
    """One pass over all checkpoints for each block of samples."""

    def __init__(
        self,
        run: SavedRun,
        voters: list[Voter],
        exit: Exit,  # noqa: A002
        samples: Samples,
        progress: CountProgress | None,
    ) -> None:
        self._run, self._voters, self._exit, self._samples = run, voters, exit, samples
        self._asker = Asker(run)
        self._progress = progress

    def block(self, span: slice) -> Ballot:
        """Ask about some neighbouring samples."""
        shown = self._asker.show(self._samples.part(span))
        left = sum(voter.weight * voter.member.members for voter in self._voters)
        width = len(range(*span.indices(len(self._samples))))
        ballot = Ballot(width, classes=self._run.traits.classes, left=left)
        for number, voter in enumerate(self._voters, start=1):
            if ballot.open.size:
                self._ask(voter, shown, ballot)
            self._tell(span.start, width, number)
        return ballot

    def _ask(self, voter: Voter, shown: Shown, ballot: Ballot) -> None:
        tables = self._asker.ask(voter.member, voter.epoch, shown, ballot.open)
        for table in tables:
            ballot.count(table.argmax(axis=1), weight=voter.weight)
        ballot.close(self._exit)

    def _tell(self, before: int, width: int, number: int) -> None:
        if self._progress is not None:
            every = len(self._voters)
            self._progress(before * every + width * number, len(self._samples) * every)


NEW: Final = "new"  # the split that an inference records


def record_votes(
    run: SavedRun,
    samples: Samples,
    path: str | os.PathLike[str],
    *,
    probabilities: bool = False,
    progress: CountProgress | None = None,
) -> None:
    """Write what each network says at each epoch; what is already there is not asked again.

    Args:
        run: whose networks to ask.
        samples: what to ask about.
        path: the record; made if it is not there.
        probabilities: keep them beside the labels.
        progress: told of rows written and rows in all.

    Raises:
        RecordMismatch: the record is of other samples or another run.
    """
    asker = Asker(run)
    shown = asker.show(_at_hand(samples))
    about = {"run": run.spec.digest(), "samples": samples.digest(), "epochs": list(run.epochs)}
    options = {**facts_of(run, samples), "split": NEW, "probabilities": probabilities}
    total = len(run.members) * len(run.epochs)
    for position, member in enumerate(run.members):
        options["metadata"] = {**about, **member.model_dump(mode="json")}
        with contextlib.ExitStack() as stack:
            recorders = [
                stack.enter_context(_recorder(path, member.number + at, options))
                for at in range(member.members)
            ]
            for row, epoch in enumerate(run.epochs):
                missing = {at for at, one in enumerate(recorders) if one.epochs <= row}
                if missing:
                    tables = asker.ask(member, epoch, shown)
                    for at in missing:
                        recorders[at].record(tables[at], epoch=row, progress=float(epoch + 1))
                if progress is not None:
                    progress(position * len(run.epochs) + row + 1, total)


def _recorder(path: str | os.PathLike[str], network: int, options: Mapping[str, Any]) -> Recorder:
    try:
        return Recorder(path, network=network, **options)
    except RecordMismatch as error:
        there = describe(path)
        if there.packed:  # says so itself
            raise
        raise RecordMismatch(
            f"{path}: holds {_what_else(there, network, options)}. A record of an inference takes "
            "the votes of one run on one set of samples: name another --record"
        ) from error


def _what_else(there: Description, network: int, options: Mapping[str, Any]) -> str:
    """Say what a record holds that is not what an inference would put there."""
    asked: dict[str, Any] = options["metadata"]
    about = {**asked, **there.metadata.get(network, {})}
    same_samples = there.samples == options["samples"] and about["samples"] == asked["samples"]
    kept = "probabilities" in there.has
    found = {
        f"predictions of the split {there.split}, which no inference wrote": there.split != NEW,
        "the votes on other samples": not same_samples,
        "the votes of another run": about["run"] != asked["run"],
        f"the votes of the epochs {about['epochs']}, where the run has checkpoints of "
        f"{asked['epochs']}": about["epochs"] != asked["epochs"],
        "labels alone, where the rule needs probabilities": options["probabilities"] and not kept,
        "probabilities, which the rule does not need": kept and not options["probabilities"],
    }
    other = "the votes on these samples with other labels, ids or classes"
    return next((what for what, differs in found.items() if differs), other)


def facts_of(run: SavedRun, samples: Samples) -> dict[str, Any]:
    """Return what a record says of samples and classes."""
    return {
        "samples": len(samples),
        "classes": run.traits.classes,
        "truth": samples.truth,
        "ids": samples.ids,
        "class_names": run.traits.class_names,
    }


def _at_hand(samples: Samples) -> Inputs:
    """Decode image files once, if they fit into memory; else they are read for each network."""
    small = len(samples) * samples.sample_bytes <= BYTES_AT_ONCE
    decode = small and isinstance(samples.inputs, ImageFiles)
    return samples.part(slice(None)) if decode else samples.inputs
