"""Prepare the data of a run for training.

`prepare_data` reads the samples of a spec and adds label noise; `add_targets` replaces the labels
by class probabilities, for runs that have a file of them.
"""

import functools
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from accord._files import cause_of
from accord.data import ImageFiles, InputSchema, Layout, Samples, Source
from accord.data import read_samples as read_new_samples
from accord.data._dataset import (
    Dataset,
    Inputs,
    Kind,
    Labels,
    Split,
    assign_folds,
    fewer_per_class,
    hold_out,
)
from accord.data._table_columns import shared_spread
from accord.data.noise import add_noise
from accord.data.readers import read_dataset
from accord.errors import ChoiceError, SourceError, SpecError, counted, listed
from accord.training._batches import (
    Batches,
    ImageBatches,
    TableBatches,
    TextBatches,
    channel_statistics,
    column_statistics,
)
from accord.training._input_schema_file import measure_input_schema
from accord.training._spec import Spec, network_specs
from accord.training.networks import NETWORKS
from accord.training.networks._external import import_transformers


def tokenize(
    texts: Sequence[str] | Sequence[tuple[str, str]], *, network: str, length: int
) -> NDArray[np.int32]:
    """Tokenize texts to shape (sample, part, token), padded to the longest text.

    The parts are the tokens, the attention mask and, for pairs, the token types.
    """
    path = network.partition(":")[2]
    transformers = import_transformers(path)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise ChoiceError(
            f"transformers:{path} holds no tokenizer that can be loaded: {error}"
        ) from error
    pairs = isinstance(texts[0], tuple)
    columns = [list(column) for column in zip(*texts, strict=True)] if pairs else [list(texts)]
    tokens = tokenizer(
        *columns,
        truncation=True,
        max_length=length,
        padding="longest",
        return_token_type_ids=pairs,
        return_tensors="np",
    )
    parts = ("input_ids", "attention_mask", *(("token_type_ids",) if pairs else ()))
    return np.stack([tokens[part] for part in parts], axis=1).astype(np.int32)


CLASSES_NAMED: Final = 5  # in a note
FOR_TABLES: Final = ("mlp", "random")  # networks that take rows of numbers
Scale: TypeAlias = tuple[NDArray[np.float32], NDArray[np.float32]]  # mean, spread


@dataclass(frozen=True, eq=False)
class PreparedData:
    """Splits of a run, with given labels and, if known, true labels."""

    dataset: Dataset
    splits: dict[str, Split]
    is_fold: bool = False  # of a cross-fitted run, which has the notes
    targets: NDArray[np.float32] | None = None  # (training sample, class), instead of labels

    @property
    def classes(self) -> int:
        return self.dataset.classes

    def sample_options(self, split: str) -> dict[str, Any]:
        """Build the recorder arguments that describe the samples of a split.

        A test split whose labels are all true has no given labels beside them.
        """
        part = self.splits[split]
        clean = part.truth is not None and np.array_equal(part.truth, part.labels)
        return {
            "samples": len(part),
            "classes": self.classes,
            "split": split,
            "truth": part.truth,
            "given": None if split == "test" and clean else part.labels,
            "ids": part.ids,
            "class_names": self.dataset.class_names,
        }

    @property
    def shape(self) -> tuple[int, tuple[int, int]]:
        """Number of channels and size of the samples, with size (1, 1) for tables and texts."""
        inputs = self.splits["train"].inputs
        if self.dataset.kind == "text":
            return 1, (1, 1)
        channels, *size = inputs.shape[1:]  # type: ignore[union-attr]
        return (channels, (1, 1)) if self.dataset.kind == "table" else (channels, tuple(size))

    def batches(
        self,
        split: str,
        *,
        device: torch.device,
        augment: tuple[str, ...] = (),
        network: str = "",
        length: int = 128,
    ) -> Batches:
        """Convert a split to batches, scaled by the training statistics.

        Texts become at most `length` tokens of the tokenizer of `network`.
        """
        return make_batches(
            self.splits[split].inputs,
            self.dataset.kind,
            self.scale,
            device=device,
            augment=augment,
            network=network,
            length=length,
        )

    def first(self, samples: int) -> "PreparedData":
        train = self.splits["train"]
        return replace(self, splits={"train": train.choose(np.arange(len(train))[:samples])})

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on skipped samples and on classes without training samples."""
        return () if self.is_fold else (*self.dataset.notes, *self._notes_on_classes())

    def _notes_on_classes(self) -> tuple[str, ...]:
        if "test" not in self.splits:
            return ()
        test = _truth(self.splits["test"])
        missing = np.setdiff1d(test, self.splits["train"].labels)
        if not missing.size:
            return ()
        names = [self.dataset.class_names[one] for one in missing]
        classes = "class" if len(names) == 1 else "classes"
        affected = int(np.isin(test, missing).sum())
        return (
            f"no training sample has the {classes} {listed(names, most=CLASSES_NAMED)}, but "
            f"{affected:,} of {len(test):,} test samples do: no network can predict them. Do both "
            "splits use the same labels?",
        )

    @functools.cached_property
    def scale(self) -> Scale | None:
        """Mean and standard deviation of each channel or column of the training samples, if any."""
        inputs = self.splits["train"].inputs
        if self.dataset.kind == "text":
            return None
        if self.dataset.kind == "table":
            mean, spread = column_statistics(np.asarray(inputs))
            return mean, shared_spread(self.dataset.columns or (), spread)
        return channel_statistics(inputs)  # type: ignore[arg-type]


def make_batches(
    inputs: Inputs,
    kind: Kind,
    scale: Scale | None,
    *,
    device: torch.device,
    augment: tuple[str, ...] = (),
    network: str = "",
    length: int = 128,
) -> Batches:
    if kind == "text" or scale is None:
        tokens = tokenize(inputs, network=network, length=length)  # type: ignore[arg-type]
        return TextBatches(tokens, device=device)
    mean, spread = scale
    if kind == "table":
        return TableBatches(np.asarray(inputs), device=device, mean=mean, spread=spread)
    return ImageBatches(
        inputs,  # type: ignore[arg-type]
        device=device,
        mean=mean,
        spread=spread,
        augment=augment,
    )


def prepare_data(spec: Spec) -> PreparedData:
    """Read the data of a spec, add label noise and hold out the validation split."""
    path = None if spec.data.path is None else spec.resolve_path(spec.data.path)
    dataset = read_dataset(spec.data.kind, path, verified=spec.data.verified, **spec.data.options)
    _check_fit(spec, dataset.kind)
    train = dataset.train
    if spec.data.per_class is not None:
        train = fewer_per_class(train, spec.data.per_class, spec.train.seed)
    train = _with_noise(spec, train, dataset)
    _check_clean(spec, train)
    splits = {"test": dataset.test}
    if spec.data.validation:
        train, splits["validation"] = hold_out(train, spec.data.validation, spec.train.seed)
    if not len(dataset.test):
        del splits["test"]
    is_fold = spec.data.cross_fit is not None and spec.data.fold is not None
    if is_fold:
        parts = assign_folds(train.labels, spec.data.cross_fit or 0, spec.train.seed)
        splits["test"] = train.choose(parts == spec.data.fold)
        train = train.choose(parts != spec.data.fold)
    _check_splits(spec, splits)
    if spec.train.clean_only:
        train = train.choose(np.asarray(train.labels == _truth(train)))
        if len(np.unique(train.labels)) < 2:
            raise SpecError(
                f"{spec.name}: train.clean_only leaves {counted(len(train), 'sample')} of fewer "
                "than two classes: almost all labels are wrong"
            )
    return PreparedData(dataset, {"train": train, **splits}, is_fold=is_fold)


def _check_splits(spec: Spec, splits: Mapping[str, Split]) -> None:
    if "test" not in splits and ("test" in spec.record.splits or spec.record.averages):
        raise SpecError(
            f"{spec.name}: there are no test samples to record. Hold out some, "
            'data.held_out = 0.2, or set record.splits = ["train"] and no record.averages'
        )


def _check_fit(spec: Spec, kind: str) -> None:
    for network in (one.network for one in network_specs(spec)):
        if kind == "text" and not network.startswith("transformers:"):
            raise SpecError(
                f"{spec.name}: texts require a network of transformers, "
                f"'transformers:NAME_OR_FOLDER'; got {network!r}"
            )
        if kind == "table" and network in NETWORKS and network not in FOR_TABLES:
            raise SpecError(
                f"{spec.name}: {network} takes images, but {spec.data.kind} is a table: set "
                'train.network = "mlp", or name your own network'
            )
    if kind != "image" and spec.train.augment:
        raise SpecError(f"{spec.name}: {kind}s cannot be augmented: remove train.augment")


def _check_clean(spec: Spec, train: Split) -> None:
    if spec.train.clean_only and train.truth is None:
        raise SpecError(
            f"{spec.name}: train.clean_only requires true labels beside the given ones. Set "
            "noise.kind (and data.verified = true if the labels are your own and right), or "
            "remove train.clean_only."
        )


def _with_noise(spec: Spec, split: Split, dataset: Dataset) -> Split:
    noise = spec.noise
    if noise.kind == "none":
        return split
    truth = _truth(split)
    given = add_noise(
        noise.kind,
        truth,
        classes=dataset.classes,
        seed=spec.train.seed if noise.seed is None else noise.seed,
        samples=split.inputs if noise.kind == "instance" else None,  # type: ignore[arg-type]
        rate=noise.rate,
        mapping=noise.mapping,
        path=None if noise.path is None else str(spec.resolve_path(noise.path)),
    )
    if split.truth is None and dataset.test.truth is None:  # nobody has verified the labels
        return replace(split, labels=given)
    return replace(split, labels=given, truth=truth)


def _truth(split: Split) -> Labels:
    return split.labels if split.truth is None else split.truth


TOLERANCE: Final = 1e-3  # of the sum of a row of targets


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
