"""Reproduce several targets: what can run does, and the rest is named with the reason."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from accord.errors import AccordError
from accord.experiments.paper.results import SCALES_KEPT, Result, load_results, write_summary
from accord.experiments.paper.runner import plan_target, reproduce
from accord.experiments.paper.runs import Workshop
from accord.experiments.paper.targets import Target, all_targets
from accord.experiments.paper.thoughts import THOUGHTS


@dataclass(frozen=True)
class Obstacle:
    """Why a target could not be reproduced."""

    target: Target
    error: AccordError


def reproduce_all(
    targets: Sequence[Target],
    workshop: Workshop,
    *,
    scale: str = "quick",
    repetitions: int | None = None,
) -> Iterator[Result | Obstacle]:
    """Reproduce the targets that can be, one after the other, and name the others.

    All are checked before the first is trained. The summary in `OUT` is brought up to date after
    each.

    Args:
        targets: what to reproduce.
        workshop: where, and by what means.
        scale: as of `reproduce`.
        repetitions: as of `reproduce`.

    Yields:
        Each result as soon as it is there; an obstacle for each target that failed in its turn;
        at last, one for each that could not begin.
    """
    obstacles = [
        Obstacle(target, error)
        for target in targets
        if (error := _why_not(target, workshop, scale, repetitions)) is not None
    ]
    if obstacles and len(targets) > 1:
        workshop.tell(f"{len(obstacles)} of {len(targets)} targets cannot run; why, at the end")
    stopped = {one.target.name for one in obstacles}
    for target in targets:
        if target.name not in stopped:
            try:
                result = reproduce(target, workshop, scale=scale, repetitions=repetitions)
            except AccordError as error:
                yield Obstacle(target, error)
            else:
                try:
                    sum_up(workshop)
                except AccordError as error:  # the result itself is kept
                    workshop.tell(str(error))
                yield result
    yield from obstacles


def _why_not(
    target: Target, workshop: Workshop, scale: str, repetitions: int | None
) -> AccordError | None:
    if target.kind in THOUGHTS:
        return None
    try:
        plan_target(target, workshop, scale=scale, repetitions=repetitions)
    except AccordError as error:
        return error
    return None


def sum_up(workshop: Workshop) -> None:
    """Bring the summary in `OUT` up to date; a damaged result is named and left out.

    Others may end at the same moment: what they kept meanwhile is looked for once more.
    """
    before: list[Result] | None = None
    while (found := _all_results(workshop)) != before:
        write_summary(found, workshop.out)
        before = found


def _all_results(workshop: Workshop) -> list[Result]:
    return load_results(workshop.out, all_targets().values(), SCALES_KEPT, say=workshop.say)
