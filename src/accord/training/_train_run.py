"""Train the networks of a spec and record their predictions.

`train` prepares the run folder once, then hands the unfinished networks to one of three executors:
lockstep (side by side on a GPU), worker processes (on the cores of a CPU), or one after the other.
Each executor is an iterator of `Progress`. All of them train a network as `train_network` does.
"""

import contextlib
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from accord.errors import ChoiceError, NotCapturable, TrainingError
from accord.training._build_networks import build_network, choose_networks
from accord.training._cross_fit import train_folds
from accord.training._hardware import choose_device, count_processes, multiply_adds
from accord.training._lockstep import LockstepNetwork, lockstep_obstacle, train_lockstep
from accord.training._network_run import NetworkRun, Progress, train_network
from accord.training._run_folder import Run, is_trainable
from accord.training._spec import NetworkSpec, Spec
from accord.training._workers import train_in_workers
from accord.training.networks import warn_once

OnProgress: TypeAlias = Callable[[Progress], None]


@dataclass(frozen=True)
class RunResult:
    """Result of training a run."""

    out: Path
    failed: dict[int, str]  # network -> error message
    notes: tuple[str, ...] = ()  # messages for the user


def default_out(spec: Spec) -> Path:
    """Build the default output folder from the name and digest of a spec."""
    return Path("runs") / f"{spec.name}-{spec.digest()}"


@warn_once()
def train(
    spec: Spec,
    out: Path,
    *,
    source: str | None = None,
    networks: Sequence[int] | None = None,
    processes: int | None = None,
    progress: OnProgress | None = None,
    overwrite: bool = False,
) -> RunResult:
    """Train the networks of a spec and record their predictions in a run folder.

    Writes `spec.toml`, one record for each split, `checkpoints/` and `metrics.csv`. A network
    whose loss or predictions become NaN is stopped and reported. The others continue.

    Small networks train in one thread. If they take long enough, worker processes train them in
    parallel, one on each core. The labels are the same to the last bit.

    With `data.cross_fit`, trains a run for each fold of the training samples, below `folds/`, and
    assembles the record of the training split from their test records.

    Args:
        spec: what to train.
        out: the run folder.
        source: the text of the spec, kept with the run. By default it is written anew.
        networks: train only these, by number, so that several machines can share a run.
        processes: the number of processes to train in, on a CPU; by default chosen by the size of
            the networks.
        progress: called at each recorded epoch, and once for each network that was finished
            before, if another is trained.
        overwrite: remove an existing run in `out` first, whatever its spec. Only files that
            training writes are removed.

    Raises:
        ChoiceError: no such network, a network that cannot be built, fewer than 1 process, or
            several on a GPU.
        SpecError: `out` holds a run of another spec.
        SourceError: the data cannot be read, or differ from those the run began with; or
            `overwrite` is set and `out` holds something else than a run.
        RecordMismatch: the labels differ from the recorded ones.
        RecordBusy: another process trains the same network.
    """
    chosen = choose_networks(spec, networks)
    _check_processes(processes)
    if spec.is_cross_fit:
        return train_folds(
            train,
            spec,
            out,
            source=source,
            networks=networks,
            progress=progress,
            processes=processes,
            overwrite=overwrite,
        )
    run = Run.create(out, spec, source=source, overwrite=overwrite)
    unfinished = [network for network in run.unfinished() if network in chosen]
    notes = list(run.data.notes)
    failed: dict[int, str] = {}
    finished = [network for network in chosen if network not in unfinished]
    epochs = spec.train.epochs
    with contextlib.closing(_executor(run, unfinished, processes, notes)) as events:
        for event in events:
            if event.error is not None:
                failed[event.network] = event.error
            elif progress is not None:
                for network in finished:  # once another network trains
                    loss = run.last_loss(network)
                    progress(Progress(network.number, epochs, epochs, loss, len(chosen)))
                finished = []
                progress(replace(event, networks=len(chosen)))
    run.write_metrics()
    return RunResult(out, dict(sorted(failed.items())), tuple(notes))


def _check_processes(processes: int | None) -> None:
    if processes is not None and processes < 1:
        raise ChoiceError(f"training needs at least 1 process; got {processes}")
    if processes is not None and processes > 1 and choose_device().type != "cpu":
        raise ChoiceError(
            "processes share the cores of a CPU; a GPU trains all networks of a run side by side "
            "in one process. Leave them out, or hide the GPU: CUDA_VISIBLE_DEVICES="
        )


def _executor(
    run: Run, networks: list[NetworkSpec], processes: int | None, notes: list[str]
) -> Generator[Progress]:
    if run.device.type != "cpu" and networks:
        return _train_on_gpu(run, networks, notes)
    if processes is None:
        sizes = [
            multiply_adds(build_network(run.spec, network, run.data), run.spec, run.data)
            for network in networks
        ]
        processes = count_processes(sizes, run.spec, run.data)
    if min(processes, len(networks)) > 1:
        return train_in_workers(run, networks, processes)
    return _train_one_by_one(run, networks)


def _train_one_by_one(run: Run, networks: Sequence[NetworkSpec]) -> Generator[Progress]:
    for network in networks:
        yield from train_network(run, network)


def _train_on_gpu(
    run: Run, networks: Sequence[NetworkSpec], notes: list[str]
) -> Generator[Progress]:
    started: set[int] = set()
    with contextlib.ExitStack() as stack:
        trainings = [stack.enter_context(NetworkRun(run, network)) for network in networks]
        together = [one for one in trainings if is_trainable(one.network)]
        if together:
            reason = lockstep_obstacle(together[0].samples)
            if run.spec.train.targets is not None:
                reason = "train.targets is not available side by side"
            try:
                if reason is None:
                    yield from _train_in_lockstep(together)
                    started = {one.spec.number for one in together}
            except NotCapturable as error:
                reason = str(error)
            if reason is not None and len(together) > 1:
                notes.append(f"the networks were trained one after the other: {reason}")
    yield from _train_one_by_one(run, [one for one in networks if one.number not in started])


def _train_in_lockstep(trainings: Sequence[NetworkRun]) -> Iterator[Progress]:
    entrants = [
        LockstepNetwork(one.network, one.loss, one.recipe, one.spec.seed, one.state)
        for one in trainings
    ]
    running = dict(enumerate(trainings))
    results = train_lockstep(entrants, trainings[0].samples, trainings[0].labels)
    for position, result in results:
        if position not in running:  # the lockstep goes on with a network that failed to record
            continue
        training = running[position]
        try:
            if isinstance(result, TrainingError):
                raise result
            yield training.record(result)
        except TrainingError as error:
            yield training.failure(error)
            del running[position]
        if not running:
            return


def finished_networks(spec: Spec, result: RunResult) -> list[int]:
    run = Run(result.out, spec)
    failed = {
        number
        for network in run.networks
        if network.number in result.failed
        for number in network.numbers
    }
    return [n for n, epochs in run.recorded_epochs().items() if epochs and n not in failed]


def result_json(spec: Spec, result: RunResult, *, seconds: float) -> dict[str, Any]:
    """Convert the result of a run to JSON, as printed by `accord train --json`."""
    run = Run(result.out, spec)
    epochs = run.recorded_epochs()
    return {
        "run": str(result.out),
        "name": spec.name,
        "networks": len(epochs),
        "epochs": {str(number): recorded for number, recorded in epochs.items()},
        "failed": {str(number): error for number, error in result.failed.items()},
        "records": {name: str(path) for name, path in run.record_paths.items()},
        "notes": list(result.notes),
        "seconds": seconds,
    }
