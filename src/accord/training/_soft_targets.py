"""Soft targets: class probabilities of each sample that replace its given label."""

import hashlib
import io
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord._files import cause_of
from accord.data import ImageFiles, Inputs, InputSchema, Layout, Samples, Source, Split
from accord.data import read_samples as read_new_samples
from accord.errors import SourceError
from accord.training._input_schema_file import measure_input_schema
from accord.training._prepared_data import PreparedData
from accord.training._spec import Spec

TOLERANCE: Final = 1e-3  # of the sum of a row


def encode_targets(targets: NDArray[np.floating[Any]]) -> tuple[bytes, str]:
    """Return the content of a file of targets (sample, class) and its SHA-256."""
    file = io.BytesIO()
    np.save(file, targets.astype(np.float32))
    return file.getvalue(), hashlib.sha256(file.getvalue()).hexdigest()


def read_samples(
    spec: Spec,
    source: Source,
    schema: InputSchema,
    format: str | None = None,  # noqa: A002
) -> Samples:
    """Read new samples as the training data of a spec are read."""
    path = None if spec.data.path is None else spec.resolve_path(spec.data.path)
    layout = Layout(spec.data.kind, spec.data.options, path, spec.data.verified)
    return read_new_samples(source, schema, layout=layout, format=format)


def add_targets(data: PreparedData, path: Path, spec: Spec) -> PreparedData:
    """Add the targets of a file to the training samples.

    The samples of `train.extra` follow the training samples. Samples with a row of zeros are left
    out.

    Raises:
        SourceError: the file is missing, is not the one that the spec names, or does not fit the
            samples.
    """
    train = data.splits["train"]
    if spec.train.extra is not None:
        source = spec.resolve_path(spec.train.extra)
        extra = read_samples(spec, source, measure_input_schema(data))
        labels = np.concatenate([train.labels, np.zeros(len(extra), train.labels.dtype)])
        train = Split(join_inputs(train.inputs, extra.inputs), labels)
    targets = _read(path, spec.train.targets, (len(train), data.classes))
    kept = np.flatnonzero(targets.any(axis=1))
    if len(kept) < len(train):
        train, targets = train.choose(kept), targets[kept]
    return replace(data, splits=data.splits | {"train": train}, targets=targets)


def _read(path: Path, digest: str | None, shape: tuple[int, int]) -> NDArray[np.float32]:
    cure = "`accord distill` writes it beside spec.toml: copy both, or distil again."
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SourceError(
            f"{path}: the targets cannot be read: {cause_of(error)}. {cure}"
        ) from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise SourceError(f"{path}: is not the file that train.targets of the spec names. {cure}")
    targets = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    if targets.shape != shape:
        raise SourceError(
            f"{path}: expected targets of shape {shape}, one row for each sample; got "
            f"{targets.shape}. Have the data changed since the targets were made?"
        )
    sums = targets.sum(axis=1)
    if not (targets >= 0).all() or (np.abs(sums - 1) > TOLERANCE)[sums != 0].any():
        raise SourceError(f"{path}: each row must hold probabilities that sum to 1, or zeros.")
    return np.asarray(targets, np.float32)


def join_inputs(first: Inputs, second: Inputs) -> Inputs:
    """Append samples to others of the same shape."""
    if isinstance(first, tuple):
        return first + second  # type: ignore[operator]
    if not isinstance(first, ImageFiles):
        more = second.read(np.arange(len(second))) if isinstance(second, ImageFiles) else second
        return np.concatenate([first, more])
    if not isinstance(second, ImageFiles):
        raise SourceError(
            "the training images are files, and cannot be joined with an array: give a folder of "
            "images"
        )
    names = *first.names, *(str((second.root / name).resolve()) for name in second.names)
    return replace(first, names=names, pixels=None, positions=None)  # a cache lacks the others
