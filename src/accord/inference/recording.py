"""Ask a run's networks and keep every vote in a record, for any rule to read."""

import contextlib
import os
from typing import Any

from accord.api import Recorder
from accord.data.dataset import Inputs
from accord.data.image_files import ImageFiles
from accord.inference.asking import Asker
from accord.inference.counting import BYTES_AT_ONCE
from accord.inference.samples import Samples
from accord.inference.saved_run import SavedRun
from accord.store.progress import CountProgress


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
    options = {**facts_of(run, samples), "split": "new", "probabilities": probabilities}
    total = len(run.members) * len(run.epochs)
    for position, member in enumerate(run.members):
        options["about"] = {**about, **member.model_dump(mode="json")}
        with contextlib.ExitStack() as stack:
            recorders = [
                stack.enter_context(Recorder(path, network=member.number + at, **options))
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
