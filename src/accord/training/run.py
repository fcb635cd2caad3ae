"""Train what a spec asks: network after network, recorded at every moment, resumed at will."""

import contextlib
import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from accord.errors import ChoiceError, SpecError, TrainingError
from accord.store.places import Folder
from accord.training.batches import Batches
from accord.training.checkpoints import State
from accord.training.keeping import Checkpoints, Keeper, Run, write_metrics
from accord.training.loop import Moment, Recipe, moments_of, train
from accord.training.losses import build_loss
from accord.training.material import Material, prepare_material
from accord.training.networks import build, to_batch_ensemble
from accord.training.settings import choose_device, recipe_for
from accord.training.spec import Member, Spec, load_spec, members_of

Progress = Callable[
    [int, int, float, int, float], None
]  # network, networks, progress, epochs, loss


@dataclass(frozen=True)
class RunResult:
    """What a run left behind."""

    out: Path
    failed: dict[int, str]  # network -> why it was stopped


def default_out(spec: Spec) -> Path:
    """Return where a run is kept unless told otherwise: by its name and what it asks."""
    return Path("runs") / f"{spec.name}-{spec.digest()}"


def train_run(
    spec: Spec,
    out: Path,
    *,
    source: str,
    networks: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> RunResult:
    """Train a spec's networks into `out`; what is already there is not done again.

    Writes `spec.toml`, one record for each split, `checkpoints/` and `metrics.csv`. A network
    whose loss becomes NaN is stopped and named, and the others go on.

    Args:
        spec: what to train.
        out: the run's folder.
        source: the spec's own text, kept with the run.
        networks: train these alone, by number, so that several processes can share a run.
        progress: called at each moment.

    Raises:
        SpecError: `out` holds a run of another spec.
        RecordBusy: another process is training the same network.
    """
    members = _chosen(members_of(spec), networks)
    _claim(spec, out, source)
    run = Run(spec, prepare_material(spec), out, choose_device())
    failed = {}
    for member in members:
        try:
            for moment in _train_member(member, run):
                if progress is not None:
                    total, epochs = len(members_of(spec)), spec.train.epochs
                    progress(member.number, total, moment.progress, epochs, moment.loss)
        except TrainingError as error:
            failed[member.number] = str(error)
    write_metrics(out / spec.record.splits[0], out / "metrics.csv")
    return RunResult(out, failed)


def _train_member(member: Member, run: Run) -> Iterator[Moment]:
    recipe = recipe_for(run.spec, member, run.device)
    samples = run.batches("train", member, augment=recipe.augment)
    with contextlib.ExitStack() as stack:
        splits = run.spec.record.splits
        keepers = [stack.enter_context(Keeper(split, member, run)) for split in splits]
        total = moments_of(recipe, len(samples))
        if all(keeper.recorded >= total for keeper in keepers):
            return
        network = _build_network(run.spec, member, run.material)
        checkpoints = Checkpoints(member, run)
        state = checkpoints.state()
        for moment in _moments(network, member, run.material, samples, recipe, state):
            for keeper in keepers:
                keeper.keep(network, moment, recipe)
            checkpoints.keep(network, moment)
            yield moment


def _moments(
    network: nn.Module,
    member: Member,
    material: Material,
    samples: Batches,
    recipe: Recipe,
    state: State | None,
) -> Iterator[Moment]:
    if not getattr(network, "trainable", True):
        yield from _untrained(network, recipe, len(samples), samples.device)
        return
    given = torch.from_numpy(material.splits["train"].labels.astype(np.int64))
    loss = build_loss(
        member.loss.kind, samples=len(samples), classes=material.classes, **member.loss.options
    )
    yield from train(network, loss, samples, given, recipe=recipe, seed=member.seed, state=state)


def _untrained(
    network: Any, recipe: Recipe, samples: int, device: torch.device
) -> Iterator[Moment]:
    """Let a network that only guesses guess anew at every moment."""
    network.to(device)
    total = moments_of(recipe, samples)
    for number in range(total):
        network.start_epoch(number)
        progress = recipe.epochs * (number + 1) / total
        yield Moment(number=number, progress=progress, loss=0.0, lr=0.0, state=None)


def _build_network(spec: Spec, member: Member, material: Material) -> nn.Module:
    channels, size = material.shape
    network = build(
        member.network,
        classes=material.classes,
        channels=channels,
        size=size,
        seed=member.seed,
        pretrained=None if spec.train.pretrained is None else Path(spec.train.pretrained),
        **member.options,
    )
    if member.members > 1:
        return to_batch_ensemble(network, members=member.members, seed=member.seed)
    return network


def _claim(spec: Spec, out: Path, source: str) -> None:
    """Keep the spec with the run, or refuse to mix two."""
    place = Folder(out)
    if place.create("spec.toml", source.encode()):
        return
    there = load_spec(out / "spec.toml")
    if there.digest() != spec.digest():
        before, now = (one.model_dump_json(indent=1).splitlines() for one in (there, spec))
        changed = [
            line
            for line in difflib.unified_diff(before, now, lineterm="", n=0)
            if line[:1] in "+-" and line[:3] not in ("+++", "---")
        ]
        raise SpecError(
            f"{out}: holds a run of another spec. What changed:\n"
            + "\n".join(changed)
            + "\nGive another folder with --out, or put the spec back."
        )


def _chosen(members: tuple[Member, ...], networks: Sequence[int] | None) -> list[Member]:
    if networks is None:
        return list(members)
    numbers = [member.number for member in members]
    strange = [number for number in networks if number not in numbers]
    if strange:
        have = ", ".join(map(str, numbers))
        raise ChoiceError(f"the spec has no network {strange[0]}; there are {have}")
    return [member for member in members if member.number in networks]
