"""Train one network on the training labels as an ensemble corrects them.

`plan_distillation` opens the votes of a run on its training split, makes targets from them and
builds the spec of the students, and of the baselines that they are compared with.
`Distillation.train` trains these runs and measures them on the test split.
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import numpy as np

from accord._files import write_file
from accord._record import Record, open_record
from accord.analysis import Audit
from accord.errors import ChoiceError, RecordError, TrainingError, counted, suggest
from accord.inference._distill_targets import (
    AUDITED,
    TARGETS,
    audit_labels,
    certain_targets,
    make_targets,
    no_gain_note,
    open_train_record,
    vote_shares,
)
from accord.training import (
    OnProgress,
    Run,
    RunResult,
    Spec,
    dump_spec,
    network_specs,
    parse_spec,
    train,
)
from accord.training._prepared_data import encode_targets
from accord.training._run_folder import TARGETS_FILE
from accord.training._spec import SEEDS_APART, NetworkOverrides
from accord.training._train_run import finished_networks

STUDENT: Final = "student"
AVERAGE: Final = "average of the students"
WEIGHT_DECAY: Final = 1e-3  # of students, where the run has none
# Of the baseline. With AdamW, 0.5 raised the accuracy of perceptrons by 0.7 points, 2 by 3 to 5
# (breast cancer, 30 % noise).
STRONG_DECAY: Final = {"sgd": 5e-3, "adamw": 2.0}
SEEDS: Final = 3  # networks of each method of a comparison, at least
# Student's t for a confidence of 95 %, by the number of networks from 2.
QUANTILES: Final = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)


@dataclass(frozen=True)
class MethodAccuracy:
    """Accuracy of a method on the test split: of each network, or of one vote."""

    name: str
    per_network: tuple[float, ...]
    passes: int = 1  # evaluations of a network for each new sample

    @property
    def accuracy(self) -> float:
        """Mean accuracy."""
        return math.fsum(self.per_network) / len(self.per_network)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Confidence interval (95 %) of the mean over seeds, or None for one network."""
        count = len(self.per_network)
        if count < 2:
            return None
        quantile = QUANTILES[min(count - 2, len(QUANTILES) - 1)]
        half = quantile * float(np.std(self.per_network, ddof=1)) / math.sqrt(count)
        return self.accuracy - half, self.accuracy + half


@dataclass(frozen=True)
class Distilled:
    """Result of distillation."""

    run: Path
    students: int
    targets: str  # how they were made
    reference: Literal["truth", "given"] | None  # labels of the test split, if there are any
    accuracy: float | None  # of one student, on average
    accuracy_all: float | None  # of the mean of their probabilities
    methods: tuple[MethodAccuracy, ...] = ()  # the run, the students, and baselines
    notes: tuple[str, ...] = ()
    failed: dict[int, str] = field(default_factory=dict)  # student -> error message


@dataclass(frozen=True, eq=False)
class _Part:
    """Networks to train."""

    name: str
    out: Path
    spec: Spec
    targets: bytes | None


@dataclass(frozen=True, eq=False)
class Distillation:
    """Students to train, and networks to compare them with."""

    teacher: Run
    parts: tuple[_Part, ...]  # the students first
    targets: str  # how they were made
    notes: tuple[str, ...]  # what to expect
    overwrite: bool = False

    def train(
        self, *, progress: OnProgress | None = None, on_start: Callable[[str], None] | None = None
    ) -> Distilled:
        """Train all networks, and measure them on the test split if it has labels.

        Args:
            progress: called after each epoch of training.
            on_start: called with a description before each run.

        Raises:
            SpecError: a folder holds another run.
            TrainingError: no network could be trained.
        """
        notes, rows = list(self.notes), _teacher_rows(self.teacher)
        results = []
        for part in self.parts:
            if on_start is not None:
                on_start(f"training: {part.name},")
            result = _train(part, overwrite=self.overwrite, progress=progress)
            notes += result.notes
            results.append(result)
            rows |= _rows(part.name, _test_record(part.out, finished_networks(part.spec, result)))
        student, record = self.parts[0], _test_record(self.parts[0].out)
        one = rows.get(STUDENT)
        every = rows.get(AVERAGE, one)
        return Distilled(
            run=student.out,
            students=len(network_specs(student.spec)),
            targets=self.targets,
            reference=None if record is None else record.reference,
            accuracy=None if one is None else one.accuracy,
            accuracy_all=None if every is None else every.accuracy,
            methods=tuple(rows.values()),
            notes=tuple(dict.fromkeys(notes)),
            failed=results[0].failed,
        )


def distill(
    run: str | os.PathLike[str],
    targets: str = "posterior",
    students: int = 1,
    epochs: int | None = None,
    extra: str | os.PathLike[str] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    compare: bool = False,
    overwrite: bool = False,
    progress: OnProgress | None = None,
) -> Distilled:
    """Train one network on the training labels of a run as its votes correct them.

    The student has the network and recipe of the run's first network, another seed, and targets
    instead of given labels. It is written as a run of its own, with its last checkpoint.

    Args:
        run: the folder that `accord train` wrote, with a record of the training split.
        targets: "posterior", "proposed", "shares", "map" or "given".
        students: their number; several can be averaged.
        epochs: of training; by default those of the run.
        extra: a file or folder of further samples. Their targets are shares of the votes of all
            checkpoints of the run.
        out: the run folder of the students, by default RUN/student.
        compare: also train baselines, each from three seeds or more: the given labels, with more
            weight decay, with a quarter of the epochs, and without the labels that the audit flags.
        overwrite: remove existing runs of other students first.
        progress: called after each epoch of training.

    Raises:
        SourceError: there is no such run, or its data have changed.
        RecordMissing: the run did not record its training split.
        ChoiceError: an argument is wrong, or the run has too few networks for an audit.
        SpecError: `out` holds another run.
        TrainingError: no student could be trained.
    """
    plan = plan_distillation(
        run,
        targets=targets,
        students=students,
        epochs=epochs,
        extra=extra,
        out=out,
        compare=compare,
        overwrite=overwrite,
    )
    return plan.train(progress=progress)


def plan_distillation(
    run: str | os.PathLike[str],
    *,
    targets: str = "posterior",
    students: int = 1,
    epochs: int | None = None,
    extra: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    compare: bool = False,
    overwrite: bool = False,
) -> Distillation:
    """Make the targets and specs of a distillation; see `distill`. Nothing is written."""
    if targets not in TARGETS:
        raise ChoiceError(f"no targets are called {targets!r}. {suggest(targets, TARGETS)}")
    for name, count in (("students", students), ("epochs", epochs)):
        if count is not None and count < 1:
            raise ChoiceError(f"{name} must be at least 1; got {count}")
    teacher = Run.open(run)
    record = open_train_record(teacher)
    audit = audit_labels(record, required=targets in AUDITED or compare)
    if isinstance(audit, RecordError) and targets in AUDITED:
        targets = "given"
    table, note = make_targets(record, audit, targets), no_gain_note(audit)
    plain = _plain_spec(teacher, students=students, epochs=epochs)
    if "test" not in plain.record.splits and (compare or extra is not None):
        what = "a comparison requires" if compare else "extra samples require"
        raise ChoiceError(f"{what} a test split to record: data.held_out = 0.2, and no cross_fit")
    if extra is not None:
        table = np.concatenate([table, vote_shares(teacher, extra)])
    content, digest = encode_targets(table)
    path = teacher.path / "student" if out is None else Path(out).expanduser()
    student = _with_targets(plain, digest, extra)
    parts = [_Part(STUDENT, path, student, content)]
    if compare:
        parts += _comparison(path, plain, parts[0], audit)
    notes = () if note is None else (note,)
    return Distillation(teacher, tuple(parts), TARGETS[targets], notes, overwrite)


def _plain_spec(run: Run, *, students: int, epochs: int | None) -> Spec:
    """Build the spec of networks like the first of a run, from other seeds, on the given labels."""
    spec, every = run.spec, network_specs(run.spec)
    first = next((one for one in every if one.network != "random"), every[0])
    begin = spec.train.seed * SEEDS_APART + len(every)
    recorded = dict.fromkeys(("test", *spec.record.splits))
    record = {
        "splits": tuple(name for name in recorded if name in run.data.splits),
        "checkpoints": 1,
        "averages": (),
        "probabilities": spec.record.probabilities or students > 1,
    }
    settings = {name: getattr(first, name) for name in ("network", "options", "optimizer")}
    settings |= {"schedule": first.schedule, "loss": first.loss}
    settings |= dict.fromkeys(("batch_ensemble", "targets", "extra"))
    settings["networks"] = tuple(NetworkOverrides(seed=begin + one) for one in range(students))
    plain = spec.change(data={"cross_fit": None}, train=settings, record=record)
    plain = plain.model_copy(update={"name": f"{spec.name}-student"})
    return plain if epochs is None else _with_epochs(plain, epochs)


def _with_epochs(spec: Spec, epochs: int) -> Spec:
    """Change the epochs of training, and those of the schedule in proportion."""
    before, share = spec.train.schedule, epochs / spec.train.epochs
    changes = {
        "warmup": before.warmup * share,
        "cycle": before.cycle and max(1, round(before.cycle * share)),
        "milestones": tuple(one * share for one in before.milestones),
    }
    return spec.change(train={"epochs": epochs, "schedule": before.model_copy(update=changes)})


def _with_decay(spec: Spec, weight_decay: float) -> Spec:
    optimizer = spec.train.optimizer.model_copy(update={"weight_decay": weight_decay})
    return spec.change(train={"optimizer": optimizer})


def _with_targets(spec: Spec, digest: str, extra: str | os.PathLike[str] | None) -> Spec:
    if not spec.train.optimizer.weight_decay:
        spec = _with_decay(spec, WEIGHT_DECAY)
    if extra is None:
        return spec.change(train={"targets": digest})
    splits = tuple(name for name in spec.record.splits if name != "train")
    path = str(Path(extra).expanduser().resolve())
    return spec.change(train={"targets": digest, "extra": path}, record={"splits": splits})


def _comparison(
    path: Path, plain: Spec, student: _Part, audit: Audit | RecordError | None
) -> Iterator[_Part]:
    """Build the students and baselines of a comparison, each from the same seeds."""
    seeds = plain.train.networks
    assert isinstance(seeds, tuple)
    more = range(len(seeds), SEEDS)
    first = seeds[0].seed or 0
    seeds = (*seeds, *(NetworkOverrides(seed=first + one) for one in more))
    record = {"splits": ("test",), "checkpoints": 0}
    folder = path.with_name(f"{path.name}-compare")

    def part(name: str, spec: Spec, targets: bytes | None = None) -> _Part:
        changed = spec.change(train={"networks": seeds}, record=record)
        return _Part(name, folder / name.replace(" ", "-"), changed, targets)

    if more:
        yield part(STUDENT, student.spec, student.targets)
    yield part("given labels", plain)
    decay = STRONG_DECAY[plain.train.optimizer.kind]
    yield part(f"weight decay {decay:g}", _with_decay(plain, decay))
    quarter = max(1, round(plain.train.epochs / 4))
    yield part(f"{counted(quarter, 'epoch')}", _with_epochs(plain, quarter))
    if isinstance(audit, Audit) and audit.flagged.any() and not audit.flagged.all():
        kept = certain_targets(audit.given, audit.classes)
        kept[audit.flagged] = 0
        content, digest = encode_targets(kept)
        yield part("labels not flagged", plain.change(train={"targets": digest}), content)


def _train(part: _Part, *, overwrite: bool, progress: OnProgress | None) -> RunResult:
    spec = parse_spec(dump_spec(part.spec), name=part.spec.name)  # checked as a whole
    run = Run(part.out, spec)
    if overwrite and part.out.exists() and any(part.out.iterdir()):
        Run.open(part.out).remove()
    run.check_spec()
    if part.targets is not None:
        write_file(part.out / TARGETS_FILE, part.targets)
    result = train(spec, part.out, progress=progress)
    if len(result.failed) == len(network_specs(spec)):
        raise TrainingError(f"{part.out}: no network could be trained: {result.failed[0]}")
    return result


def _test_record(path: Path, networks: Sequence[int] | None = None) -> Record | None:
    """Open the record of a test split if it has labels."""
    found = Run.open(path).find_record("test")
    record = None if found is None else open_record(found, networks=networks, common=True)
    return None if record is None or record.reference is None else record


def _teacher_rows(run: Run) -> dict[str, MethodAccuracy]:
    record = _test_record(run.path)
    if record is None:
        return {}
    passes = {"majority": record.networks, "max-agreement": record.networks * record.epochs}
    rows = _rows("single", record)
    for score in record.score(list(passes)):
        rows[score.rule] = MethodAccuracy(score.rule, (score.accuracy,), passes[score.rule])
    return rows


def _rows(name: str, record: Record | None) -> dict[str, MethodAccuracy]:
    """Measure single networks and, of students, their average."""
    if record is None:
        return {}
    (score,) = record.score("single")
    rows = {name: MethodAccuracy(name, score.per_network or ())}
    if name == STUDENT and record.networks > 1 and record.reader.has_probabilities:
        (score,) = record.score("probability-average")
        rows[AVERAGE] = MethodAccuracy(AVERAGE, (score.accuracy,), record.networks)
    return rows
