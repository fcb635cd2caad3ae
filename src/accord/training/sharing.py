"""Share the networks of a run out among processes, where that pays."""

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch

from accord.errors import TrainingError
from accord.training.crew import Crew, Pace, Word
from accord.training.keeping import Run, recorded_moments
from accord.training.loop import Moment, moments_of
from accord.training.members import build_network
from accord.training.settings import recipe_for, threads, threads_for
from accord.training.spec import Member


@dataclass(frozen=True)
class Finished:
    """A network that needed no more training."""

    loss: float  # its last


Reached: TypeAlias = Moment | Word | Finished
Training: TypeAlias = Generator[tuple[Member, Reached | TrainingError]]
Alone: TypeAlias = Callable[[Member, Run], Training]


@dataclass(frozen=True)
class Hands:
    """What may train beside this process."""

    source: str  # the spec's own text
    processes: int | None  # this one among them; None means as many as pay
    seconds: float  # that it takes to read the data


def train_one_by_one(
    members: Sequence[Member],
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


def _looks_done(members: Sequence[Member], run: Run) -> list[Member]:
    """Return the networks whose rows are all there; no process need begin for those."""
    there = recorded_moments(run.out / run.spec.record.splits[0])
    recipe = recipe_for(run.spec, members[0], run.device) if members else None
    samples = len(run.material.splits["train"])
    return [
        one for one in members if recipe and there.get(one.number, 0) >= moments_of(recipe, samples)
    ]


def _as_told(word: Word) -> Word | TrainingError:
    return word if word.stopped is None else TrainingError(word.stopped)


class _Worth:
    """Judges whether more processes pay, and how many."""

    def __init__(self, members: Sequence[Member], run: Run, hands: Hands) -> None:
        self._members, self._run = members, run
        self._pace = Pace(run.spec.train.epochs, seconds=hands.seconds)
        shared = hands.processes is None and run.device.type == "cpu"
        self._able = torch.get_num_threads() if shared else 1

    def more(self, reached: Reached | TrainingError, *, waiting: int) -> int:
        """Return how many more processes pay, now that a network has come so far."""
        if self._able == 1 or not isinstance(reached, Moment):
            return 0
        if not self._pace.pays(reached.progress, waiting=waiting):
            return 0
        if not self._all_small():
            self._able = 1
        return min(self._able - 1, waiting)

    def _all_small(self) -> bool:
        """Tell whether one thread trains each of the networks, where there are more."""
        tried: dict[str, int] = {}
        with threads(self._able):  # the network that is being trained has fewer
            for member in self._members:
                alike = f"{member.network} {sorted(member.options.items())} {member.members}"
                if alike not in tried:
                    network = build_network(self._run.spec, member, self._run.material)
                    tried[alike] = threads_for(network, self._run.spec, self._run.material)
        return set(tried.values()) == {1}
