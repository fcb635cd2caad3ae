"""Cross-fitting: every training sample is predicted by networks that were not trained on it.

A spec with `data.cross_fit = K` trains K ordinary runs in `folds/0`, `folds/1` … of its folder;
the test split of run k is fold k of the training samples. The rows of their test records are then
assembled into the record `train`: row (network i, epoch e) holds for each sample the prediction of
network i of the fold that did not train on it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from accord.data._dataset import assign_folds
from accord.errors import SpecError, counted, listed
from accord.store import RecordReader, Writer, label_dtype, make_sample_info, open_reader
from accord.store._validation import Row
from accord.training._run_folder import FOLDS, Run
from accord.training._spec import NetworkSpec, Spec, network_specs
from accord.training._spec_toml import dump_spec, parse_spec

if TYPE_CHECKING:
    from accord.training._network_run import Progress
    from accord.training._train_run import OnProgress, RunResult

CLASSES_NAMED: Final = 5  # in a note


def cross_fit_spec(spec: Spec, folds: int) -> Spec:
    """Change a spec so that it cross-fits its networks.

    Probabilities are recorded, because they rank labels better than votes do.
    """
    if spec.data.cross_fit not in (None, folds):
        raise SpecError(
            f"{spec.name}: data.cross_fit is {spec.data.cross_fit}, but --cross-fit is {folds}: "
            "leave one of them out"
        )
    record = {"splits": ("train",), "averages": (), "probabilities": True}
    changed = spec.change(data={"cross_fit": folds}, record=record)
    return parse_spec(dump_spec(changed), name=spec.name)  # checked as a whole


def fold_spec(spec: Spec, fold: int) -> Spec:
    """Build the spec of the networks that are not trained on a fold."""
    changed = spec.change(data={"fold": fold}, record={"splits": ("test",)})
    return changed.model_copy(update={"name": f"{spec.name}-fold{fold}"})


def fold_path(out: Path, fold: int) -> Path:
    return out / FOLDS / str(fold)


def train_folds(
    train: "Callable[..., RunResult]",
    spec: Spec,
    out: Path,
    *,
    source: str | None = None,
    networks: Sequence[int] | None = None,
    progress: "OnProgress | None" = None,
    overwrite: bool = False,
    **options: Any,
) -> "RunResult":
    """Train the runs of all folds with `train`, and assemble the record of the training split.

    A network that failed in a fold is left out of the record.
    """
    run = Run.create(out, spec, source=source, overwrite=overwrite)
    folds = spec.data.cross_fit or 0
    every = [one.number for one in network_specs(spec)]
    count = len(every if networks is None else networks)
    failed: dict[int, str] = {}
    notes = [*run.data.notes, *_notes(run, folds)]
    for fold in range(folds):

        def forward(event: "Progress", fold: int = fold) -> None:
            if progress is not None:
                number = fold * (every[-1] + 1) + event.network
                progress(replace(event, network=number, networks=folds * count))

        one = fold_spec(spec, fold)
        result = train(one, fold_path(out, fold), networks=networks, progress=forward, **options)
        for number, error in result.failed.items():
            failed.setdefault(number, f"fold {fold}: {error}")
        notes += result.notes
    for network in run.networks:
        if network.number not in failed and (networks is None or network.number in networks):
            _assemble(run, network, folds)
    run.write_metrics()
    return replace(
        result, out=out, failed=dict(sorted(failed.items())), notes=tuple(dict.fromkeys(notes))
    )


def _assemble(run: Run, network: NetworkSpec, folds: int) -> None:
    """Write the rows of a network into the record of the training split."""
    parts = assign_folds(run.data.splits["train"].labels, folds, run.spec.train.seed)
    sample_info = make_sample_info(**run.data.sample_options("train"))
    metadata = {"spec": run.spec.digest(), "cross_fit": folds, **network.model_dump(mode="json")}
    for number in network.numbers:
        readers = [
            open_reader(fold_path(run.path, fold) / "test", networks=[number])
            for fold in range(folds)
        ]
        infos = [reader.networks_info()[0] for reader in readers]
        writer = Writer(
            run.path / "train",
            sample_info,
            network=number,
            probabilities=run.spec.record.probabilities,
            metadata=metadata,
        )
        try:
            for epoch in range(writer.epochs, readers[0].epochs):
                metrics = [info.metrics[epoch] for info in infos]
                means = {key: float(np.mean([one[key] for one in metrics])) for key in metrics[0]}
                row = _assembled_row(readers, epoch, parts)
                writer.write(row, progress=infos[0].progress[epoch], metrics=means)
        finally:
            writer.close()


def _assembled_row(readers: Sequence[RecordReader], epoch: int, parts: np.ndarray[Any, Any]) -> Row:
    classes, everything = readers[0].classes, slice(None)
    labels = np.empty(len(parts), label_dtype(classes))
    probabilities = None
    if readers[0].has_probabilities:
        probabilities = np.empty((len(parts), classes), np.float16)
    for fold, reader in enumerate(readers):
        labels[parts == fold] = reader.read_labels([0], [epoch], everything)[0, 0]
        if probabilities is not None:
            read = reader.read_probabilities([0], [epoch], everything)
            probabilities[parts == fold] = read[0, 0]
    return Row(labels, probabilities)


def _notes(run: Run, folds: int) -> list[str]:
    """Note the classes with fewer samples than folds."""
    names = run.data.dataset.class_names
    sizes = np.bincount(run.data.splits["train"].labels, minlength=len(names))
    few = [(names[one], int(sizes[one])) for one in np.flatnonzero((sizes > 0) & (sizes < folds))]
    if not few:
        return []
    named = listed([f"{name} ({size})" for name, size in few], most=CLASSES_NAMED)
    note = f"fewer samples than the {folds} folds have: {named}"
    single = sum(size == 1 for _, size in few)
    if single:
        note += (
            f". No network can confirm the label of {counted(single, 'sample')} without another "
            "of its class: remove or merge such classes"
        )
    return [note]
