"""Ask a run's networks and keep every vote in a record, for any rule to read."""

import contextlib
import os
from collections.abc import Mapping
from typing import Any, Final

from accord.api import Recorder
from accord.data.dataset import Inputs
from accord.data.image_files import ImageFiles
from accord.errors import RecordMismatch
from accord.inference.asking import Asker
from accord.inference.counting import BYTES_AT_ONCE
from accord.inference.samples import Samples
from accord.inference.saved_run import SavedRun
from accord.store import describe
from accord.store.describe import Description
from accord.store.progress import CountProgress

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
        options["about"] = {**about, **member.model_dump(mode="json")}
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
    asked: dict[str, Any] = options["about"]
    about = {**asked, **there.about.get(network, {})}
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
