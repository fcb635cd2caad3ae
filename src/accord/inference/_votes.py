"""Where votes go as checkpoints are evaluated: counts, arrays in memory, or a record on disk."""

import contextlib
import os
import tempfile
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from accord._recorder import Recorder
from accord.data import Samples
from accord.errors import RecordMismatch, StorageError
from accord.inference._checkpoints_of_run import RunCheckpoints
from accord.inference._early_exit import VoteCounts
from accord.inference._evaluate import Checkpoint
from accord.rules._context import memory_budget
from accord.store import ArrayReader, NetworkInfo, SampleInfo, describe, label_dtype

NEW: Final = "new"  # the split of the samples that inference records


class CountedVotes(VoteCounts):
    """Votes of checkpoints, counted for a block of samples until their labels are settled."""

    def pending(self, checkpoint: Checkpoint) -> NDArray[np.intp]:  # noqa: ARG002
        """Return the samples that are not settled."""
        return self.open

    def add(self, checkpoint: Checkpoint, probabilities: NDArray[np.float32]) -> None:
        """Count the votes of every member."""
        for member in probabilities:
            self.count(member.argmax(axis=1), weight=checkpoint.weight)
        self.settle()


class AllVotes:
    """Every vote as arrays (network, epoch, sample), for rules that need more than counts.

    Arrays beyond the memory budget (`ACCORD_MEMORY`) lie in a temporary file.
    """

    def __init__(
        self, run: RunCheckpoints, sample_info: SampleInfo, *, probabilities: bool
    ) -> None:
        self._run, self._sample_info = run, sample_info
        shape = len(run.numbers), len(run.epochs), sample_info.samples
        classes = sample_info.classes
        self.labels = _allocate(shape, label_dtype(classes))
        self.probabilities = _allocate((*shape, classes), np.float16) if probabilities else None

    def block(self, span: slice) -> "_ArrayBlock":
        """Return the votes of consecutive samples, to be filled."""
        tables = None if self.probabilities is None else self.probabilities[:, :, span]
        return _ArrayBlock(self.labels[:, :, span], tables)

    def reader(self) -> ArrayReader:
        """Return a reader of the votes, with the run's networks and epochs."""
        return _VotesReader(self._run, self.labels, self._sample_info, self.probabilities)


class _ArrayBlock:
    def __init__(self, labels: NDArray[Any], probabilities: NDArray[Any] | None) -> None:
        self._labels, self._probabilities = labels, probabilities

    def pending(self, checkpoint: Checkpoint) -> NDArray[np.intp]:  # noqa: ARG002
        return np.arange(self._labels.shape[2])

    def add(self, checkpoint: Checkpoint, probabilities: NDArray[np.float32]) -> None:
        network, epoch = checkpoint.position
        for number, member in enumerate(probabilities, start=network):
            self._labels[number, epoch] = member.argmax(axis=1)
            if self._probabilities is not None:
                self._probabilities[number, epoch] = member


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


class _VotesReader(ArrayReader):
    """Votes in memory, under the numbers and the progress that training recorded."""

    def __init__(
        self,
        run: RunCheckpoints,
        labels: NDArray[Any],
        sample_info: SampleInfo,
        probabilities: NDArray[Any] | None,
    ) -> None:
        super().__init__(
            labels, sample_info, probabilities=probabilities, name=f"{run.folder} on new samples"
        )
        self.numbers = run.numbers
        self._progress = tuple(float(epoch + 1) for epoch in run.epochs)

    def networks_info(self) -> tuple[NetworkInfo, ...]:
        metrics: tuple[dict[str, Any], ...] = ({},) * self.epochs
        return tuple(NetworkInfo(number, self._progress, metrics) for number in self.numbers)


class RecordedVotes:
    """Every vote in a record on disk, row by row; rows that it holds already are not evaluated.

    A context manager: it holds the recorders of one network at a time, or of all members of a
    BatchEnsemble.

    Args:
        path: the record; created if it does not exist.
        run: the run of the checkpoints.
        samples: the samples to predict, all of them as one block.
        probabilities: keep probabilities beside the labels.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        run: RunCheckpoints,
        samples: Samples,
        *,
        probabilities: bool,
    ) -> None:
        self._path, self._samples = path, len(samples)
        self._metadata = {
            "run": run.spec.digest(), "samples": samples.digest(), "epochs": list(run.epochs),
        }  # fmt: skip
        self._options = {
            **sample_options(run, samples), "split": NEW, "probabilities": probabilities,
        }  # fmt: skip
        self._recorders: list[Recorder] = []
        self._open = contextlib.ExitStack()

    def pending(self, checkpoint: Checkpoint) -> NDArray[np.intp]:
        """Return all samples, or none if the record holds the checkpoint's rows."""
        self._open_recorders(checkpoint)
        missing = any(one.epochs <= checkpoint.position[1] for one in self._recorders)
        return np.arange(self._samples if missing else 0)

    def add(self, checkpoint: Checkpoint, probabilities: NDArray[np.float32]) -> None:
        """Write one row for each member that lacks it."""
        row, progress = checkpoint.position[1], float(checkpoint.epoch + 1)
        for recorder, member in zip(self._recorders, probabilities, strict=True):
            if recorder.epochs <= row:
                recorder.record(member, epoch=row, progress=progress)

    def _open_recorders(self, checkpoint: Checkpoint) -> None:
        network = checkpoint.network
        if self._recorders and self._recorders[0].network == network.number:
            return
        self._open.close()
        metadata = {**self._metadata, **network.model_dump(mode="json")}
        options = {**self._options, "metadata": metadata}
        self._recorders = [
            self._open.enter_context(_open_recorder(self._path, network.number + at, options))
            for at in range(network.members)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()


def sample_options(run: RunCheckpoints, samples: Samples) -> dict[str, Any]:
    """Return the arguments of a recorder that describe samples and classes."""
    return {
        "samples": len(samples),
        "classes": run.schema.classes,
        "truth": samples.truth,
        "ids": samples.ids,
        "class_names": run.schema.class_names,
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
    differences = {
        f"predictions of the split {there.split}, not of an inference": there.split != NEW,
        "the votes on other samples": not same_samples,
        "the votes of another run": found["run"] != wanted["run"],
        f"the votes of the epochs {found['epochs']}, and the run has checkpoints of "
        f"{wanted['epochs']}": found["epochs"] != wanted["epochs"],
        "labels alone, and the rule needs probabilities": options["probabilities"]
        and not has_probabilities,
        "probabilities, and the rule needs none": has_probabilities
        and not options["probabilities"],
    }
    other = "the votes on these samples with other labels, ids or classes"
    return next((text for text, differs in differences.items() if differs), other)
