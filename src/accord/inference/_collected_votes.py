"""Collect votes as counts, arrays or records."""

import contextlib
import os
import tempfile
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from accord._recorder import Recorder
from accord.data import Samples
from accord.errors import RecordMismatch, StorageError
from accord.inference._checkpoints_of_run import RunCheckpoints
from accord.inference._early_exit import VoteCounts
from accord.inference._evaluator import Checkpoint
from accord.rules._analysis_context import memory_budget
from accord.store import ArrayReader, SampleInfo, describe, label_dtype

NEW: Final = "new"  # the split of the samples that inference records


class CountedVotes(VoteCounts):
    def pending(self, checkpoint: Checkpoint) -> NDArray[np.intp]:  # noqa: ARG002
        return self.open

    def add(self, checkpoint: Checkpoint, probabilities: NDArray[np.float32]) -> None:
        for member in probabilities:
            self.count(member.argmax(axis=1), weight=checkpoint.weight)
        self.settle()


class AllVotes:
    """Vote arrays of shape (network, epoch, sample).

    Arrays beyond the memory budget (`ACCORD_MEMORY`) lie in a temporary file.
    """

    def __init__(
        self, checkpoints: RunCheckpoints, sample_info: SampleInfo, *, probabilities: bool
    ) -> None:
        self._checkpoints, self._sample_info = checkpoints, sample_info
        shape = len(checkpoints.numbers), len(checkpoints.epochs), sample_info.samples
        classes = sample_info.classes
        self._labels = _allocate(shape, label_dtype(classes))
        self._probabilities = _allocate((*shape, classes), np.float16) if probabilities else None
        self._block = slice(0)

    def begin(self, block: slice) -> "AllVotes":
        self._block = block
        return self

    def pending(self, checkpoint: Checkpoint) -> NDArray[np.intp]:  # noqa: ARG002
        return np.arange(self._block.stop - self._block.start)

    def add(self, checkpoint: Checkpoint, probabilities: NDArray[np.float32]) -> None:
        network, epoch = checkpoint.position
        for number, member in enumerate(probabilities, start=network):
            self._labels[number, epoch, self._block] = member.argmax(axis=1)
            if self._probabilities is not None:
                self._probabilities[number, epoch, self._block] = member

    def reader(self) -> ArrayReader:
        return ArrayReader(
            self._labels,
            self._sample_info,
            probabilities=self._probabilities,
            numbers=self._checkpoints.numbers,
            progress=[epoch + 1 for epoch in self._checkpoints.epochs],
            name=f"{self._checkpoints.run.path} on new samples",
        )


def _allocate(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if size <= memory_budget():
        return np.empty(shape, dtype)
    try:
        with tempfile.TemporaryFile(prefix="accord-") as file:
            # Reserve the space now: a disk that fills up under a mapped file kills the process.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            return np.memmap(file, dtype, "r+", shape=shape)
    except OSError as error:
        raise StorageError(
            f"{tempfile.gettempdir()}: no space for {size / 1e9:.1f} GB of votes: "
            f"{error.strerror}. Set TMPDIR to a larger disk, or ACCORD_MEMORY to more memory."
        ) from error


class RecordedVotes(contextlib.ExitStack):
    """Votes stored in a record on disk, where existing rows are not evaluated again.

    All samples are one block. A context manager: it holds the recorders of one network at a time,
    or of all members of a BatchEnsemble.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        checkpoints: RunCheckpoints,
        samples: Samples,
        *,
        probabilities: bool,
    ) -> None:
        super().__init__()
        self._path, self._samples = path, len(samples)
        self._metadata = {
            "run": checkpoints.run.spec.digest(),
            "samples": samples.digest(),
            "epochs": list(checkpoints.epochs),
        }
        self._options = sample_options(checkpoints, samples)
        self._options |= {"split": NEW, "probabilities": probabilities}
        self._recorders: list[Recorder] = []

    def pending(self, checkpoint: Checkpoint) -> NDArray[np.intp]:
        """Get all samples, or none if the checkpoint is recorded."""
        self._open_recorders(checkpoint)
        missing = any(one.epochs <= checkpoint.position[1] for one in self._recorders)
        return np.arange(self._samples if missing else 0)

    def add(self, checkpoint: Checkpoint, probabilities: NDArray[np.float32]) -> None:
        row, progress = checkpoint.position[1], float(checkpoint.epoch + 1)
        for recorder, member in zip(self._recorders, probabilities, strict=True):
            if recorder.epochs <= row:
                recorder.record(member, epoch=row, progress=progress)

    def _open_recorders(self, checkpoint: Checkpoint) -> None:
        network = checkpoint.network
        if self._recorders and self._recorders[0].network == network.number:
            return
        self.close()
        metadata = {**self._metadata, **network.model_dump(mode="json")}
        options = {**self._options, "metadata": metadata}
        self._recorders = []
        for at in range(network.members):
            recorder = _open_recorder(self._path, network.number + at, options)
            self.callback(recorder.close, quiet=True)  # the votes may be there
            self._recorders.append(recorder)


def sample_options(checkpoints: RunCheckpoints, samples: Samples) -> dict[str, Any]:
    return {
        "samples": len(samples),
        "classes": checkpoints.schema.classes,
        "truth": samples.truth,
        "given": samples.given,
        "ids": samples.ids,
        "class_names": checkpoints.schema.class_names,
    }


def _open_recorder(
    path: str | os.PathLike[str], network: int, options: Mapping[str, Any]
) -> Recorder:
    try:
        return Recorder(path, network=network, **options)
    except RecordMismatch as error:
        if describe(path).packed:
            raise
        raise RecordMismatch(
            f"{path}: holds {_difference(path, network, options)}. One record takes the votes of "
            "one run on one set of samples: name another --record"
        ) from error


def _difference(path: str | os.PathLike[str], network: int, options: Mapping[str, Any]) -> str:
    there, wanted = describe(path), options["metadata"]
    found = {**wanted, **there.metadata.get(network, {})}
    same_samples = (there.samples, found["samples"]) == (options["samples"], wanted["samples"])
    has_probabilities = "probabilities" in there.has
    needs_probabilities = options["probabilities"]
    differences = (
        (there.split != NEW, f"predictions of the split {there.split}, not of an inference"),
        (not same_samples, "the votes on other samples"),
        (found["run"] != wanted["run"], "the votes of another run"),
        (
            found["epochs"] != wanted["epochs"],
            f"the votes of the epochs {found['epochs']}, and the run has checkpoints of "
            f"{wanted['epochs']}",
        ),
        (needs_probabilities > has_probabilities, "labels alone, and the rule needs probabilities"),
        (has_probabilities > needs_probabilities, "probabilities, and the rule needs none"),
        (True, "the votes on these samples with other labels, ids or classes"),
    )
    return next(text for differs, text in differences if differs)
