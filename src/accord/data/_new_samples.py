"""Read new samples for prediction.

`read_samples` finds the format of a file or folder, reads it with the functions that read training
data (`accord.data.readers`), and compares the result with the schema of the training samples.
Labels are optional and are matched with the class names of the schema.
"""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accord._files import load_npy, load_npz
from accord.data._dataset import Images, Inputs, Labels, NamedColumns
from accord.data._image_files import ImageFiles
from accord.data._schema import InputSchema, Samples, check_samples, match_labels
from accord.data._table_columns import Table
from accord.data.readers import find_reader, read_dataset
from accord.data.readers._find_files import read_text
from accord.data.readers.glue import TASKS
from accord.data.readers.image_folder import ENDINGS, TEST, TRAIN, first_of, list_images
from accord.data.readers.npz import as_inputs, flat_labels
from accord.data.readers.tables import as_names, load_table, read_unquoted
from accord.errors import ChoiceError, SourceError, counted, suggest

Source: TypeAlias = (
    str | os.PathLike[str] | NDArray[Any] | Sequence[str] | Sequence[tuple[str, str]]
)
_CURE: Final = "Remove the file: every file gets a label."  # for one that is not an image


@dataclass(frozen=True)
class Layout:
    """Source of the training samples, as given in a spec."""

    kind: str = "npz"  # of the reader
    options: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None
    verified: bool = False  # whether labels are known to be right


def read_samples(
    source: Source,
    schema: InputSchema,
    *,
    layout: Layout = Layout(),  # noqa: B008 -- immutable
    format: str | None = None,  # noqa: A002
) -> Samples:
    """Read new samples and validate them against a schema.

    Args:
        source: a file, a folder, or the samples themselves: images (sample, channel, row,
            column) as uint8, features (sample, feature), texts or pairs of texts.
        schema: the schema of the training samples.
        layout: where the training samples came from; its options name the columns of a table.
        format: one of `SAMPLE_FORMATS`, by default chosen by the file's ending or the
            folder's content.

    Raises:
        SourceError: the samples are missing, or do not fit the schema.
        ChoiceError: the format is unknown, or no format belongs to the file's ending.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source).expanduser()
        name = _find_format(path, schema, layout) if format is None else format
        if name not in SAMPLE_FORMATS:
            raise ChoiceError(f"no format is called {name!r}. {suggest(name, SAMPLE_FORMATS)}")
        samples = SAMPLE_FORMATS[name](path, schema, layout)
    else:
        samples = Samples(_from_values(source, schema, "the samples"))
    check_samples(samples, schema)
    return samples


def _find_format(path: Path, schema: InputSchema, layout: Layout) -> str:
    if not path.exists():
        raise SourceError(f"{path}: no such file or folder.")
    if path.is_dir():
        # Published layouts of image files may keep labels in lists beside the images.
        published = find_reader(layout.kind).image_files and layout.kind != "image-folder"
        trained_on = layout.path is not None and path.resolve() == layout.path.resolve()
        images = schema.kind == "image" and not (published and trained_on)
        return "images" if images and list_images(path) else "run"
    ending = path.suffix.lower()
    if ending in ENDINGS:
        return "images"
    if ending[1:] in _BY_ENDING:
        return ending[1:]
    raise ChoiceError(
        f"{path}: the ending {ending or '(none)'} belongs to no format; known are "
        f"{', '.join(f'.{name}' for name in _BY_ENDING)}, images and folders. "
        "Name the format: --format"
    )


def _read_test_split(path: Path, schema: InputSchema, layout: Layout) -> Samples:
    dataset = read_dataset(layout.kind, path, verified=layout.verified, **layout.options)
    if dataset.class_names != schema.class_names:
        raise SourceError(
            f"{path}: has {dataset.classes} classes, {', '.join(dataset.class_names[:5])} …; "
            f"the run has {schema.classes}, {', '.join(schema.class_names[:5])} …"
        )
    split = dataset.test
    inputs = split.inputs
    if isinstance(inputs, ImageFiles):
        inputs = replace(inputs, cure=_CURE)
    given = split.labels if split.truth is None else None
    return Samples(inputs, split.truth, split.ids, str(path), dataset.notes, given)


def _read_images(path: Path, schema: InputSchema, layout: Layout) -> Samples:
    if schema.kind != "image":
        raise SourceError(f"{path}: holds images; the networks were trained on {schema.kind}s.")
    if schema.size[0] != schema.size[1]:
        raise SourceError(
            f"{path}: the networks were trained on images of {schema.size[0]} by "
            f"{schema.size[1]} pixels, and image files are cropped to squares. "
            "Give the images as an .npz file."
        )
    root = path.parent if path.is_file() else path
    if path.is_dir() and first_of(path, TRAIN):
        root = first_of(path, TEST) or path
    names = (path.name,) if path.is_file() else tuple(list_images(root))
    labels = _folder_labels(root, names, schema.class_names)
    size = schema.size[0]
    files = ImageFiles(root, names, size=size, resize=schema.resize or size, cure=_CURE)
    inputs: Inputs = files
    if schema.channels == 1 and names:
        blocks = np.array_split(np.arange(len(files)), len(files) // 256 + 1)
        inputs = np.concatenate([to_grey(block) for block in files.stream(blocks)])
    return _samples(inputs, labels, np.array(names), path, verified=layout.verified)


def _samples(
    inputs: Inputs, labels: Labels | None, ids: NDArray[Any] | None, path: Path, *, verified: bool
) -> Samples:
    truth, given = (labels, None) if verified else (None, labels)
    return Samples(inputs, truth, ids, str(path), given=given)


def _folder_labels(
    root: Path, names: tuple[str, ...], class_names: tuple[str, ...]
) -> Labels | None:
    folders = [name.split("/")[0] if "/" in name else "" for name in names]
    if not set(class_names).intersection(folders):
        return None
    if unknown := sorted(set(folders) - set(class_names)):
        raise SourceError(
            f"{root}: some folders have the names of classes, and "
            f"{unknown[0] or 'images beside them'!r} is not a class. Sort all images by class, "
            "or none."
        )
    return match_labels(np.array(folders), class_names, where=str(root))


def to_grey(images: Images) -> Images:
    """Convert RGB images to grayscale with the luma weights of ITU-R 601."""
    weights = np.array([299, 587, 114])
    grey = np.einsum("schw,c->shw", images, weights, dtype=np.int64)
    return np.asarray((grey + 500) // 1000, np.uint8)[:, np.newaxis]


_INPUTS: Final = ("inputs", "images", "rows", "texts", "test_inputs", "x_test", "x")


def _read_npz(path: Path, schema: InputSchema, layout: Layout) -> Samples:
    arrays = load_npz(path)
    inputs, labels, ids = (
        next((arrays[name] for name in names if name in arrays), None)
        for names in (
            _INPUTS,
            ("truth", "labels", "test_labels", "y_test", "y"),
            ("ids", "test_ids"),
        )
    )
    if inputs is None:
        raise SourceError(
            f"{path}: holds {', '.join(arrays) or 'nothing'}; the samples must be called one of "
            f"{', '.join(_INPUTS)}."
        )
    if "class_names" in arrays:
        names = tuple(str(name) for name in arrays["class_names"].tolist())
        if names != schema.class_names:
            raise SourceError(
                f"{path}: has other classes ({', '.join(names[:5])} …) than the run "
                f"({', '.join(schema.class_names[:5])} …)."
            )
    if labels is not None:
        labels = match_labels(flat_labels(labels), schema.class_names, where=str(path))
    verified = layout.verified or "truth" in arrays
    return _samples(_from_values(inputs, schema, str(path)), labels, ids, path, verified=verified)


def _read_npy(path: Path, schema: InputSchema, layout: Layout) -> Samples:  # noqa: ARG001
    return Samples(_from_values(load_npy(path), schema, str(path)), name=str(path))


def _from_values(values: Any, schema: InputSchema, where: str) -> Inputs:
    if schema.kind == "text" and not isinstance(values, np.ndarray):
        return tuple(tuple(one) if isinstance(one, list) else one for one in values)
    array = np.asarray(values)
    first, last = (schema.channels, *schema.size), (*schema.size, schema.channels)
    channels_last = array.shape[1:] == last != first
    try:
        return as_inputs(array, channels="last" if channels_last else "first")
    except SourceError as error:
        raise SourceError(f"{where}: {error}") from error


def _read_table(path: Path, schema: InputSchema, layout: Layout, *, ending: str) -> Samples:
    # The columns have the names of the training data; the labels may be missing.
    task, options = TASKS.get(layout.kind), layout.options
    unquoted = ending == ".tsv" and task is not None
    if unquoted:
        texts, _ = read_unquoted(path)
        table = Table(path, texts, np.arange(len(next(iter(texts.values())))) + 2)
    else:
        table = load_table(path, ending)
    names = task.label if task else (options.get("truth"), options.get("label", "label"))
    label = next((name for name in names if name in table.columns), None)
    labels = None
    notes: tuple[str, ...] = ()
    if label is not None:
        absent = int(table.missing(label).sum()) if options.get("missing") == "fill" else 0
        if absent:
            cells = counted(absent, "row")
            notes = (f"{cells} of {len(table)} have no {label!r}: predictions are not compared",)
        else:
            where = f"{path}: column {label!r}"
            labels = match_labels(np.array(table.labels(label)), schema.class_names, where=where)
    ids = options.get("ids")
    if schema.kind == "text":
        inputs: Inputs = table.texts(_text_columns(table, layout))
    else:
        columns = _feature_columns(table, schema, {label, ids})
        inputs, notes = table.features(columns), (*notes, *table.notes(columns))
    found = table.rows if ids is None else table.columns.get(ids, table.rows)
    verified = layout.verified or (label is not None and label == options.get("truth"))
    samples = _samples(inputs, labels, np.array(found), path, verified=verified)
    return replace(samples, notes=notes)


def _text_columns(table: Table, layout: Layout) -> tuple[str, ...]:
    task, text = TASKS.get(layout.kind), layout.options.get("text")
    spellings = task.texts if task else (("text",), ("sentence",))
    if text is not None:
        spellings = (as_names(text),)
    for names in spellings:
        if set(names) <= set(table.columns):
            return names
    wanted = " or ".join(", ".join(names) for names in spellings)
    raise SourceError(f"{table.path}: has no column {wanted}; it has {', '.join(table.columns)}.")


def _feature_columns(table: Table, schema: InputSchema, others: set[str | None]) -> NamedColumns:
    if schema.kind != "table":
        raise SourceError(
            f"{table.path}: holds a table; the networks were trained on {schema.kind}s."
        )
    if schema.columns is None:  # trained on an array: the columns come in its order
        return tuple((name, None) for name in table.columns if name not in others)
    missing = [name for name, _ in schema.columns if name not in table.columns]
    if missing:
        raise SourceError(
            f"{table.path}: has no column {missing[0]!r}, which the networks were trained on; "
            f"it has {', '.join(table.columns)}."
        )
    return schema.columns


def _read_lines(path: Path, schema: InputSchema, layout: Layout) -> Samples:  # noqa: ARG001
    # One text per line, or a pair separated by a tab; empty lines are skipped.
    if schema.kind != "text":
        raise SourceError(f"{path}: holds texts; the networks were trained on {schema.kind}s.")
    texts = {
        number: line.rstrip("\r")
        for number, line in enumerate(read_text(path).split("\n"), start=1)
        if line.strip()
    }
    ids = np.array(list(texts), np.intp)
    if not schema.pairs:
        return Samples(tuple(texts.values()), ids=ids, name=str(path))
    pairs = {number: tuple(text.split("\t")) for number, text in texts.items()}
    for number, pair in pairs.items():
        if len(pair) != 2:
            raise SourceError(
                f"{path}: line {number} has {len(pair)} parts; the networks were trained on "
                "pairs of texts, separated by a tab."
            )
    return Samples(tuple(pairs.values()), ids=ids, name=str(path))  # type: ignore[arg-type]


_TABLES: Final = ("csv", "tsv", "parquet")
SAMPLE_FORMATS: Final[Mapping[str, Callable[[Path, InputSchema, Layout], Samples]]] = {
    "npz": _read_npz,
    "npy": _read_npy,
    "images": _read_images,
    **{kind: functools.partial(_read_table, ending=f".{kind}") for kind in _TABLES},
    "txt": _read_lines,
    "run": _read_test_split,
}
_BY_ENDING: Final = ("npz", "npy", *_TABLES, "txt")
