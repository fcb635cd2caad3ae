"""What became of a run: how far its networks came, and where their records lie."""

import contextlib
import difflib
import functools
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from accord.errors import (
    ChoiceError,
    NotARecord,
    NotCapturable,
    PredictionError,
    SpecError,
    TrainingError,
)
from accord.store._storage import Folder
from accord.training._batches import Batches
from accord.training._build import build_network, check_networks, choose_networks, loss_for
from accord.training._checkpoints import State
from accord.training._input_schema import find_input_schema, save_input_schema
from accord.training._lockstep import LockstepNetwork, lockstep_obstacle, train_lockstep
from accord.training._loop import EpochResult, Recipe, count_recorded_epochs, train_loop
from accord.training._network_run import (
    Checkpoints,
    Run,
    SplitRecorder,
    epochs_in_record,
    last_loss,
    write_metrics,
)
from accord.training._prepared_data import PreparedData, prepare_data
from accord.training._settings import choose_device, count_threads, recipe_for, torch_threads
from accord.training._weight_averages import AveragedNetwork
from accord.training._workers import Crew, Pace, Tell, Word
from accord.training.networks import warn_once
from accord.training.spec import NAMES, NetworkSpec, Spec, load_spec, network_specs


@dataclass(frozen=True)
class Finished:
    """A network that needed no more training."""

    loss: float  # its last


Reached: TypeAlias = EpochResult | Word | Finished
Training: TypeAlias = Generator[tuple[NetworkSpec, Reached | TrainingError]]
Alone: TypeAlias = Callable[[NetworkSpec, Run], Training]


@dataclass(frozen=True)
class Hands:
    """What may train beside this process."""

    source: str  # the spec's own text
    processes: int | None  # this one among them; None means as many as pay
    seconds: float  # that it takes to read the data


def train_one_by_one(
    members: Sequence[NetworkSpec],
    run: Run,
    hands: Hands,
    *,
    alone: Alone,
    task: str,
) -> Training:
    """Train one network after the other; where that takes long, other processes take some.

    Args:
        members: the networks.
        run: what they are of.
        hands: what else may train.
        alone: trains one network in this process.
        task: trains one in another, as a `Crew` takes it.
    """
    done = _looks_done(members, run)
    for member in done:
        yield from alone(member, run)
    left = {member.number: member for member in members if member not in done}
    facts = {"spec": run.spec.model_dump_json(), "out": str(run.out), "source": hands.source}
    with Crew(task, [{"network": number, **facts} for number in left]) as crew:
        if hands.processes is not None:
            crew.begin(min(hands.processes, len(left)) - 1)
        worth = _Worth(list(left.values()), run, hands)
        shared = crew.share(
            lambda job: alone(left[job["network"]], run),
            lambda reached: worth.more(reached[1], waiting=len(crew.waiting)),
        )
        with contextlib.closing(shared):
            for number, reached in shared:
                yield left[number], _as_told(reached) if isinstance(reached, Word) else reached[1]


def _looks_done(members: Sequence[NetworkSpec], run: Run) -> list[NetworkSpec]:
    """Return the networks whose rows are all there; no process need begin for those."""
    there = epochs_in_record(run.out / run.spec.record.splits[0])
    recipe = recipe_for(run.spec, members[0], run.device) if members else None
    samples = len(run.material.splits["train"])
    return [
        one
        for one in members
        if recipe and there.get(one.number, 0) >= count_recorded_epochs(recipe, samples)
    ]


def _as_told(word: Word) -> Word | TrainingError:
    return word if word.stopped is None else TrainingError(word.stopped)


class _Worth:
    """Judges whether more processes pay, and how many."""

    def __init__(self, members: Sequence[NetworkSpec], run: Run, hands: Hands) -> None:
        self._members, self._run = members, run
        self._pace = Pace(run.spec.train.epochs, seconds=hands.seconds)
        shared = hands.processes is None and run.device.type == "cpu"
        self._able = torch.get_num_threads() if shared else 1

    def more(self, reached: Reached | TrainingError, *, waiting: int) -> int:
        """Return how many more processes pay, now that a network has come so far."""
        if self._able == 1 or not isinstance(reached, EpochResult):
            return 0
        if not self._pace.pays(reached.progress, waiting=waiting):
            return 0
        if not self._all_small():
            self._able = 1
        return min(self._able - 1, waiting)

    def _all_small(self) -> bool:
        """Tell whether one thread trains each of the networks, where there are more."""
        tried: dict[str, int] = {}
        with torch_threads(self._able):  # the network that is being trained has fewer
            for member in self._members:
                alike = f"{member.network} {sorted(member.options.items())} {member.members}"
                if alike not in tried:
                    network = build_network(self._run.spec, member, self._run.material)
                    tried[alike] = count_threads(network, self._run.spec, self._run.material)
        return set(tried.values()) == {1}


TASK: Final = "accord.training.run:train_network"  # what a process of a crew does

# What is told at each moment: network, how many are trained, progress, epochs, loss. Networks that
# were finished before count among them, and are told at their last epoch.
Progress: TypeAlias = Callable[[int, int, float, int, float], None]


@dataclass(frozen=True)
class RunResult:
    """What a run left behind."""

    out: Path
    failed: dict[int, str]  # network -> why it was stopped
    notes: tuple[str, ...] = ()  # for people to read


def default_out(spec: Spec) -> Path:
    """Return where a run is kept unless told otherwise: by its name and what it asks."""
    return Path("runs") / f"{spec.name}-{spec.digest()}"


@warn_once()
def train(
    spec: Spec,
    out: Path,
    *,
    source: str,
    networks: Sequence[int] | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
) -> RunResult:
    """Train a spec's networks into `out`; what is already there is not done again.

    Writes `spec.toml`, one record for each split, `checkpoints/` and `metrics.csv`. A network
    whose loss becomes NaN, or whose predictions do, is stopped and named, and the others go on.

    On a CPU, networks so small that one thread trains them are shared out among as many processes
    as torch has threads, where that pays; the labels are the same to the last bit.

    Args:
        spec: what to train.
        out: the run's folder.
        source: the spec's own text, kept with the run.
        networks: train these alone, by number, so that several processes can share a run.
        processes: train in so many, this one among them, whatever it pays; 1 trains one network
            after the other. On a CPU alone.
        progress: called at each moment; once for a network that was finished before, if another
            is trained.

    Raises:
        ChoiceError: there is no such network, one is named twice, or one cannot be built; fewer
            than 1 process is asked for, or several on a GPU.
        SpecError: `out` holds a run of another spec.
        SourceError: the data cannot be read, or are not those that the run began with.
        RecordBusy: another process is training the same network.
    """
    members = choose_networks(spec, networks)
    device = choose_device()
    _check_processes(processes, device)
    check_same_spec(spec, out)
    asked = time.monotonic()
    run = Run(spec, prepare_data(spec), out, device)
    hands = Hands(source, processes, seconds=time.monotonic() - asked)
    traits = find_input_schema(run.material)
    if not (out / "spec.toml").exists():
        check_networks(spec, run.material)
    _claim(spec, out, source)  # not before all is checked: what cannot begin leaves nothing
    save_input_schema(out, traits)
    failed: dict[int, str] = {}
    teller = _Teller(progress, len(members), spec.train.epochs)
    notes = list(run.material.notes)
    with contextlib.closing(_train_members(members, run, notes, hands)) as training:
        for member, reached in training:
            if isinstance(reached, TrainingError):
                failed[member.number] = str(reached)
            else:
                teller.tell(member, reached)
    write_metrics(out / spec.record.splits[0], out / "metrics.csv")
    return RunResult(out, dict(sorted(failed.items())), tuple(notes))


def train_network(*, spec: str, out: str, source: str, network: int, tell: Tell) -> str | None:
    """Train one network of a run, as a process of a crew does; return why it was stopped, if so."""

    def progress(_network: int, _networks: int, epoch: float, _epochs: int, loss: float) -> None:
        tell(epoch, loss)

    asked = Spec.model_validate_json(spec)
    result = train(
        asked, Path(out), source=source, networks=[network], processes=1, progress=progress
    )
    return result.failed.get(network)


def _check_processes(processes: int | None, device: torch.device) -> None:
    if processes is not None and processes < 1:
        raise ChoiceError(f"training takes at least 1 process; got {processes}")
    if processes is not None and processes > 1 and device.type != "cpu":
        raise ChoiceError(
            "processes share out the cores of a CPU; a GPU trains all networks of a run side by "
            "side in one. Leave them out, or hide the GPU: CUDA_VISIBLE_DEVICES="
        )


class _Teller:
    """Tells of each moment; of networks that were finished before, if another is trained."""

    def __init__(self, progress: Progress | None, networks: int, epochs: int) -> None:
        self._progress, self._networks, self._epochs = progress, networks, epochs
        self._waiting: list[tuple[int, float, float]] = []  # network, progress, loss
        self._begun = False

    def tell(self, member: NetworkSpec, reached: Reached) -> None:
        progress = float(self._epochs)
        if not isinstance(reached, Finished):
            self._begun, progress = True, reached.progress
        self._waiting.append((member.number, progress, reached.loss))
        if self._progress is None or not self._begun:
            return
        for network, done, loss in self._waiting:
            self._progress(network, self._networks, done, self._epochs, loss)
        self._waiting = []


def _train_members(
    members: Sequence[NetworkSpec], run: Run, notes: list[str], hands: Hands
) -> Training:
    """Train in lockstep what can be, and the rest one network after the other, or shared out."""
    trained: set[int] = set()
    if run.device.type == "cuda":
        with contextlib.ExitStack() as stack:
            starts = [_Start(member, run, stack) for member in members]
            waiting = [start for start in starts if start.trainable and not start.finished]
            if waiting:
                reason = lockstep_obstacle(waiting[0].samples)
                try:
                    if reason is None:
                        yield from _together(waiting, run)
                        trained = {start.member.number for start in waiting}
                except NotCapturable as error:
                    reason = str(error)
                if reason is not None and len(waiting) > 1:
                    notes.append(f"the networks were trained one after the other: {reason}")
    left = [member for member in members if member.number not in trained]
    yield from train_one_by_one(left, run, hands, alone=_alone, task=TASK)


def _together(
    starts: Sequence["_Start"], run: Run
) -> Iterator[tuple[NetworkSpec, EpochResult | TrainingError]]:
    entrants = [start.entrant for start in starts]
    labels = _given(run.material)
    going = dict(enumerate(starts))
    for position, reached in train_lockstep(entrants, starts[0].samples, labels):
        if position not in going:  # the lockstep trains on what could not be recorded
            continue
        start = going[position]
        kept = start.keep(reached) if isinstance(reached, EpochResult) else reached
        yield start.member, kept
        if isinstance(kept, TrainingError):
            del going[position]
        if not going:
            return


def _alone(member: NetworkSpec, run: Run) -> Training:
    """Train one network in this process, if it needs it."""
    with contextlib.ExitStack() as stack:
        start = _Start(member, run, stack)
        if start.finished:
            yield member, Finished(last_loss(run.out / run.spec.record.splits[0], member.number))
            return
        if run.device.type == "cpu":
            stack.enter_context(torch_threads(count_threads(start.network, run.spec, run.material)))
        try:
            for moment in _moments(start, run.material):
                kept = start.keep(moment)
                yield member, kept
                if isinstance(kept, TrainingError):
                    return
        except TrainingError as error:
            yield member, error


class _Start:
    """One network about to be trained: what it sees, where it stands, what keeps it."""

    def __init__(self, member: NetworkSpec, run: Run, stack: contextlib.ExitStack) -> None:
        self.member, self._run = member, run
        self.recipe = recipe_for(run.spec, member, run.device)
        asked: list[tuple[str, str | None]] = [(split, None) for split in run.spec.record.splits]
        asked += [("test", average) for average in run.spec.record.averages]
        self._keepers = [
            stack.enter_context(SplitRecorder(split, member, run, average=average))
            for split, average in asked
        ]
        self._checkpoints = Checkpoints(member, run)

    @functools.cached_property
    def samples(self) -> Batches:
        """The samples to train on."""
        return self._run.batches("train", self.member, augment=self.recipe.augment)

    @functools.cached_property
    def network(self) -> nn.Module:
        """The network, with its first weights."""
        network = build_network(self._run.spec, self.member, self._run.material)
        averages = self._run.spec.record.averages
        return (
            AveragedNetwork(network, averages) if averages and _is_trainable(network) else network
        )

    @functools.cached_property
    def loss(self) -> nn.Module:
        """What it minimises."""
        return loss_for(self.member, self._run.material)

    @functools.cached_property
    def state(self) -> State | None:
        """Where to go on from: the start, if a record lacks what came before the kept state."""
        state = self._checkpoints.state()
        return state if state is not None and self._holds(state.epochs) else None

    @property
    def finished(self) -> bool:
        """Whether every moment is recorded, and the last checkpoint written."""
        recorded = self._holds(self.recipe.epochs)
        return recorded and (self._checkpoints.finished or not self.trainable)

    def _holds(self, epochs: int) -> bool:
        """Tell whether the records hold all of the first so many epochs, the last recorded."""
        samples = len(self._run.material.splits["train"])
        moments, total = (
            count_recorded_epochs(replace(self.recipe, epochs=some), samples)
            for some in (epochs, self.recipe.epochs)
        )
        return all(keeper.holds(moments, of=total) for keeper in self._keepers)

    @property
    def trainable(self) -> bool:
        """Whether there is anything to train; a network that guesses has nothing."""
        return _is_trainable(self.network)

    @functools.cached_property
    def entrant(self) -> LockstepNetwork:
        """Return it as the lockstep takes it."""
        return LockstepNetwork(self.network, self.loss, self.recipe, self.member.seed, self.state)

    def keep(self, moment: EpochResult) -> EpochResult | TrainingError:
        """Record, and write the checkpoints that are due; or return why that cannot be.

        A loss is that of the weights before a step: the last step of a moment may have made
        them so large that only the predictions tell.
        """
        try:
            self._keep(moment)
        except PredictionError as error:
            return TrainingError(
                f"the predictions of epoch {moment.index} (progress {moment.progress:g}), after "
                f"learning rate {moment.lr:g}, cannot be recorded: {error} If the network "
                "diverged, a smaller rate, a warm-up, or float32 instead of bfloat16 may help."
            )
        return moment

    def _keep(self, moment: EpochResult) -> None:
        if isinstance(self.network, AveragedNetwork) and moment.state is not None:
            self.network.end_epoch(moment.progress / self.recipe.epochs)
        for keeper in self._keepers:
            keeper.keep(self.network, moment, self.recipe)
        self._checkpoints.keep(self.network, moment)


def _moments(start: _Start, material: PreparedData) -> Iterator[EpochResult]:
    if not start.trainable:
        yield from _untrained(start.network, start.recipe, start.samples)
        return
    yield from train_loop(
        start.network,
        start.loss,
        start.samples,
        _given(material),
        recipe=start.recipe,
        seed=start.member.seed,
        state=start.state,
    )


def _is_trainable(network: nn.Module) -> bool:
    return bool(getattr(network, "trainable", True))


def _given(material: PreparedData) -> Tensor:
    return torch.from_numpy(material.splits["train"].labels.astype(np.int64))


def _untrained(network: Any, recipe: Recipe, samples: Batches) -> Iterator[EpochResult]:
    """Let a network that only guesses guess anew at every moment."""
    network.to(samples.device)
    total = count_recorded_epochs(recipe, len(samples))
    for number in range(total):
        network.start_epoch(number)
        progress = recipe.epochs * (number + 1) / total
        yield EpochResult(index=number, progress=progress, loss=0.0, lr=0.0, state=None)


def _claim(spec: Spec, out: Path, source: str) -> None:
    """Keep the spec with the run, or refuse to mix two."""
    if not Folder(out).create("spec.toml", source.encode()):
        check_same_spec(spec, out)


def check_same_spec(spec: Spec, out: Path) -> None:
    """Refuse a folder that holds a run of another spec.

    Raises:
        SpecError: it does; the message shows what changed.
    """
    if not (out / "spec.toml").exists():
        return
    there = load_spec(out / "spec.toml")
    if there.digest() != spec.digest():
        told = [one.model_dump_json(indent=1, exclude=NAMES) for one in (there, spec)]
        before, now = (one.splitlines() for one in told)
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


def recorded_epochs(spec: Spec, out: Path) -> dict[int, int]:
    """Return how many epochs are recorded of each network of a spec, none being 0."""
    try:
        there = epochs_in_record(out / spec.record.splits[0])
    except NotARecord:  # a worker died while it began one
        there = {}
    return {
        number: there.get(number, 0)
        for member in network_specs(spec)
        for number in range(member.number, member.number + member.members)
    }


def finished_networks(spec: Spec, result: RunResult) -> list[int]:
    """Return the networks of a run that recorded something and were not stopped."""
    stopped = {
        number
        for member in network_specs(spec)
        if member.number in result.failed
        for number in range(member.number, member.number + member.members)
    }
    epochs = recorded_epochs(spec, result.out)
    return [number for number in epochs if epochs[number] and number not in stopped]


def record_paths(spec: Spec, out: Path) -> dict[str, Path]:
    """Return where a run's records lie, by split; with averages, `test-ema` and the like."""
    names = [*spec.record.splits, *(f"test-{average}" for average in spec.record.averages)]
    return {name: out / name for name in names}


def result_json(spec: Spec, result: RunResult, *, seconds: float) -> dict[str, Any]:
    """Return what became of a run in the form that `accord train --json` prints."""
    epochs = recorded_epochs(spec, result.out)
    return {
        "run": str(result.out),
        "name": spec.name,
        "networks": len(epochs),
        "epochs": {str(number): recorded for number, recorded in epochs.items()},
        "failed": {str(number): why for number, why in result.failed.items()},
        "records": {name: str(path) for name, path in record_paths(spec, result.out).items()},
        "notes": list(result.notes),
        "seconds": seconds,
    }
