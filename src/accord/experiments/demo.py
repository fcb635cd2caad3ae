"""The demo: small networks on digits whose training labels are partly wrong."""

import contextlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accord.errors import RecordMismatch, TrainingError, missing_extra

try:
    import torch
except ImportError as error:
    raise missing_extra("the demo", "torch", extra="train", cause=error) from error

from accord._record import Record, open_record
from accord._recorder import Recorder
from accord.analysis import Score
from accord.data.noise import symmetric_noise
from accord.data.readers.digits import Digits, load_digits, split_digits
from accord.report.html import write_report
from accord.training._batches import ImageBatches
from accord.training._loop import EpochResult, Recipe, predict_probabilities, train_loop
from accord.training._losses import CrossEntropy
from accord.training._settings import torch_threads
from accord.training._workers import Crew, Job, Pace, Tell, Word
from accord.training.networks import build_small_cnn
from accord.training.run import Progress
from accord.training.spec import OptimizerSpec

CLASSES = 10
NOISE_RATE = 0.4
WIDTH = 24  # the widest that trains within a minute: it fits most of the wrong labels
OPTIMIZER = OptimizerSpec(kind="sgd", lr=0.02, momentum=0.9, weight_decay=0.0)


@dataclass(frozen=True)
class DemoResult:
    """Where the demo's record lies, and how much is in it."""

    record: Path
    networks: int
    epochs: int
    samples: int  # to test on, with clean labels
    training_samples: int  # 40 % of them with a wrong label
    classes: int


@dataclass(frozen=True)
class DemoPages:
    """What the demo writes once its record is complete."""

    record: Record
    scores: list[Score]
    predictions: Path
    report: Path


def write_demo_pages(out: Path) -> DemoPages:
    """Predict and score from the record in `out`; write `predictions.csv` and `report.html`."""
    record = open_record(out / "record")
    record.save(record.predict(), out / "predictions.csv")
    write_report(record, out / "report.html")
    return DemoPages(record, record.score(), out / "predictions.csv", out / "report.html")


@dataclass(frozen=True, eq=False)
class _Task:
    images: ImageBatches  # to train on
    given: NDArray[np.integer]  # their labels, (sample,), partly wrong
    test_images: ImageBatches
    truth: NDArray[np.integer]  # the test images' labels, (sample,)


def run_demo(
    out: Path, *, progress: Progress, seed: int = 0, networks: int = 5, epochs: int = 40
) -> DemoResult:
    """Train small networks on noisy digits and record every epoch in `out/record`.

    On one machine the same arguments give the same record, bit by bit. Started
    again after an interruption, it adds what is missing. Where there are several
    cores, networks are trained side by side.

    Args:
        out: a folder, made if need be.
        progress: called after each epoch of training.
        seed: split, noise, first weights and training all follow from it.
        networks: how many to train; the first ones are the same however many follow.
        epochs: how many epochs to train each for.

    Returns:
        Where the record is, and its sizes.

    Raises:
        RecordMismatch: `out` holds the record of a demo with another seed or other epochs.
    """
    task = _make_task(seed)
    jobs = [
        {"network": network, "out": str(out), "seed": seed, "epochs": epochs}
        for network in range(networks)
    ]
    pace, cores = Pace(epochs), torch.get_num_threads()

    def more(moment: EpochResult) -> int:
        pays = cores > 1 and pace.pays(moment.progress, waiting=len(crew.waiting))
        return min(cores - 1, len(crew.waiting)) if pays else 0

    with Crew("accord.experiments.demo:record_network", jobs) as crew:
        shared = crew.share(lambda job: _record_network(task, job), more)
        with contextlib.closing(shared):
            for network, reached in shared:
                if isinstance(reached, Word) and reached.stopped is not None:
                    raise TrainingError(f"{out}: network {network} was stopped: {reached.stopped}")
                progress(network, networks, reached.progress, epochs, reached.loss)
    return DemoResult(
        record=out / "record",
        networks=networks,
        epochs=epochs,
        samples=len(task.truth),
        training_samples=len(task.given),
        classes=CLASSES,
    )


def record_network(*, out: str, network: int, seed: int, epochs: int, tell: Tell) -> None:
    """Train and record one network of a demo, as a process of a crew does."""
    job = {"out": out, "network": network, "seed": seed, "epochs": epochs}
    for moment in _record_network(_make_task(seed), job):
        tell(moment.progress, moment.loss)


def _record_network(task: _Task, job: Job) -> Generator[EpochResult]:
    out, network, seed, epochs = (job[key] for key in ("out", "network", "seed", "epochs"))
    recipe = Recipe(epochs=epochs, batch=64, optimizer=OPTIMIZER, augment=("shift",))
    about = _describe_run(recipe, seed)
    # As a run of so small a network does; and the bits are the same however many cores there are.
    with torch_threads(1), _open_recorder(Path(out) / "record", network, task, about) as recorder:
        yield from _record_missing(recorder, task, recipe, _draws(seed, 3 + network)[-1])


def _draws(seed: int, count: int) -> list[int]:
    """Draw the seeds of the split, the noise and the networks; the first are always the same."""
    return [int(one) for one in np.random.SeedSequence(seed).generate_state(count)]


def _open_recorder(path: Path, network: int, task: _Task, about: dict[str, object]) -> Recorder:
    try:
        return Recorder(
            path,
            network=network,
            samples=len(task.truth),
            classes=CLASSES,
            truth=task.truth,
            class_names=[str(digit) for digit in range(CLASSES)],
            split="test",
            probabilities=True,
            metadata=about,
        )
    except RecordMismatch as error:
        raise RecordMismatch(
            f"{path}: holds another record than this demo would write ({error}) "
            "Was the demo run here with another seed or number of epochs? "
            "Give another folder, or delete this one."
        ) from error


def _record_missing(
    recorder: Recorder, task: _Task, recipe: Recipe, seed: int
) -> Iterator[EpochResult]:
    if recorder.epochs >= recipe.epochs:
        return
    # No checkpoints here: a network that was cut off is trained again from its start, through
    # the same bits, and only the epochs that the record does not hold yet are recorded.
    network = build_small_cnn(classes=CLASSES, width=WIDTH, seed=seed)
    given = torch.from_numpy(task.given.astype(np.int64))
    for moment in train_loop(network, CrossEntropy(), task.images, given, recipe=recipe, seed=seed):
        if moment.index >= recorder.epochs:
            probabilities = predict_probabilities(network, task.test_images)
            recorder.record(probabilities, loss=moment.loss, lr=moment.lr)
        yield moment


def _make_task(seed: int) -> _Task:
    split_seed, noise_seed = _draws(seed, 2)
    training, test = split_digits(load_digits(), seed=split_seed)
    given = symmetric_noise(training.labels, rate=NOISE_RATE, classes=CLASSES, seed=noise_seed)
    return _Task(_batches(training, ("shift",)), given, _batches(test), test.labels)


def _batches(digits: Digits, augment: tuple[str, ...] = ()) -> ImageBatches:
    # Paper stays 0, as the zeros that a shift brings in; ink goes up to 1.
    scale = {"mean": np.zeros(1, np.float32), "spread": np.full(1, 16, np.float32)}
    images = digits.images[:, np.newaxis]
    return ImageBatches(images, device=torch.device("cpu"), augment=augment, **scale)


def _describe_run(recipe: Recipe, seed: int) -> dict[str, object]:
    return {
        "data": "digits",
        "noise": {"kind": "symmetric", "rate": NOISE_RATE},
        "network": {"kind": "small-cnn", "width": WIDTH},
        "epochs": recipe.epochs,
        "batch": recipe.batch,
        "optimizer": recipe.optimizer.model_dump(),
        "seed": seed,
    }
