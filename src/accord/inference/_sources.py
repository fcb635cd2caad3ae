"""Where new samples come from: files, folders and arrays."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord._files import load_npz
from accord.data._dataset import Inputs, Split
from accord.data._images import ImageFiles
from accord.data.readers import find_reader, read_dataset
from accord.data.readers.glue import TASKS
from accord.data.readers.image_folder import ENDINGS, TEST, TRAIN, first_of, list_images
from accord.data.readers.tables import Columns, as_texts, read_columns, read_unquoted
from accord.errors import ChoiceError, SourceError, suggest
from accord.inference._samples import Samples, as_labels, check_samples, named_by_numbers, to_grey
from accord.training._input_schema import InputSchema
from accord.training.spec import Spec


def read_rows(ending: str) -> Callable[[Path, Spec, InputSchema], Samples]:
    """Return what reads a table with this ending.

    The columns are found by the names that the run's own data have; the column of labels may be
    missing. A run whose data have no such names takes all columns but labels, in their order.
    """

    def read(path: Path, spec: Spec, traits: InputSchema) -> Samples:
        columns = _read(path, ending, spec)
        label = _label_column(columns, spec)
        options = spec.data.options
        truth = None
        if label is not None:
            given = np.array([str(value) for value in columns[label]])
            truth = _labels(given, traits, f"{path}: column {label!r}")
        name = options.get("ids")
        ids = None if name is None else columns.get(name)
        reader = _texts if traits.kind == "text" else _numbers
        inputs = reader(path, columns, spec, traits, label)
        return Samples(inputs, truth, None if ids is None else np.array(ids), str(path))

    return read


def read_text_lines(path: Path, spec: Spec, traits: InputSchema) -> Samples:  # noqa: ARG001
    """Read one text a line, or a pair with a tab between; empty lines are left out."""
    if traits.kind != "text":
        raise SourceError(
            f"{path}: holds texts; the run's networks were trained on {traits.kind}s."
        )
    try:
        lines = path.read_text("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: cannot be read as text: {error}") from error
    texts = [line.rstrip("\r") for line in lines if line.strip()]
    if not traits.pairs:
        return Samples(tuple(texts), name=str(path))
    pairs = [tuple(text.split("\t")) for text in texts]
    for number, pair in enumerate(pairs, start=1):
        if len(pair) != 2:
            raise SourceError(
                f"{path}: text {number} has {len(pair)} parts; the run's networks read pairs, "
                "with a tab between the two."
            )
    return Samples(tuple(pairs), name=str(path))  # type: ignore[arg-type]


def _read(path: Path, ending: str, spec: Spec) -> Columns:
    if ending == ".tsv" and spec.data.kind in TASKS:
        return read_unquoted(path)[0]
    return read_columns(path, ending)


def _label_column(columns: Columns, spec: Spec) -> str | None:
    options = spec.data.options
    task = TASKS.get(spec.data.kind)
    names = task.label if task else (options.get("truth"), options.get("label", "label"))
    return next((name for name in names if name in columns), None)


def _labels(given: NDArray[Any], traits: InputSchema, where: str) -> NDArray[Any]:
    unknown = not set(given.tolist()) <= set(traits.class_names)
    if unknown and not named_by_numbers(traits.class_names):
        numbers = {str(number) for number in range(traits.classes)}
        if set(given.tolist()) <= numbers:
            return given.astype(np.int64)
    return as_labels(given, traits.class_names, where=where)


def _text_columns(spec: Spec) -> tuple[tuple[str, ...], ...]:
    """Return the columns of texts, in each way they may be spelled."""
    if spec.data.kind in TASKS:
        return TASKS[spec.data.kind].texts
    text = spec.data.options.get("text")
    if text is None:
        return (("text",), ("sentence",))
    return ((text,) if isinstance(text, str) else tuple(text),)


def _texts(
    path: Path,
    columns: Columns,
    spec: Spec,
    traits: InputSchema,  # noqa: ARG001
    label: str | None,  # noqa: ARG001
) -> Inputs:
    spellings = _text_columns(spec)
    names = next((names for names in spellings if set(names) <= set(columns)), None)
    if names is None:
        wanted = " or ".join(", ".join(names) for names in spellings)
        raise SourceError(f"{path}: has no column {wanted}; it has {', '.join(columns)}.")
    return as_texts(columns, names)


def _numbers(
    path: Path, columns: Columns, spec: Spec, traits: InputSchema, label: str | None
) -> Inputs:
    if traits.kind != "table":
        raise SourceError(f"{path}: is a table; the run's networks were trained on {traits.kind}s.")
    wanted = traits.columns
    if wanted is None:
        others = {label, spec.data.options.get("ids")}
        wanted = tuple((name, None) for name in columns if name not in others)
    missing = [name for name, _ in wanted if name not in columns]
    if missing:
        raise SourceError(
            f"{path}: has no column {missing[0]!r}, which the run's networks were trained on; "
            f"it has {', '.join(columns)}."
        )
    parts = [_column(path, name, columns[name], values) for name, values in wanted]
    return np.concatenate(parts, axis=1)


def _column(
    path: Path, name: str, cells: Sequence[Any] | NDArray[Any], values: tuple[str, ...] | None
) -> NDArray[np.float32]:
    if values is not None:
        return _one_hot(path, name, cells, values)
    try:
        return np.array(cells, np.float32)[:, np.newaxis]
    except (ValueError, TypeError) as error:
        raise SourceError(f"{path}: column {name!r} holds what is no number: {error}") from error


def _one_hot(
    path: Path, name: str, cells: Sequence[Any] | NDArray[Any], values: tuple[str, ...]
) -> NDArray[np.float32]:
    said = np.array([str(cell) for cell in cells])
    strange = sorted(set(said.tolist()) - set(values))
    if strange:
        raise SourceError(
            f"{path}: column {name!r} holds {strange[0]!r}, which no training sample had; "
            f"there were {', '.join(values[:8])}{' …' if len(values) > 8 else ''}."
        )
    return np.asarray(said[:, np.newaxis] == np.array(values), np.float32)


Source = str | os.PathLike[str] | NDArray[Any] | Sequence[str] | Sequence[tuple[str, str]]
Reader = Callable[[Path, Spec, InputSchema], Samples]

_INPUTS: Final = ("inputs", "images", "rows", "texts", "test_inputs", "x_test", "x")
_LABELS: Final = ("labels", "truth", "test_labels", "y_test", "y")
_IDS: Final = ("ids", "test_ids")
AT_ONCE: Final = 256  # images to turn grey
CURE: Final = "Take it away: every file is to get a label."  # for one that is no image


def find_samples(
    source: Source,
    spec: Spec,
    traits: InputSchema,
    *,
    format: str | None = None,  # noqa: A002
) -> Samples:
    """Read new samples and hold them to what a run's networks expect.

    Args:
        source: a file, a folder, or the samples themselves: images (sample, channel, row,
            column) of bytes, rows of numbers, texts or pairs of texts.
        spec: the run's.
        traits: what the run's samples have in common.
        format: one of `FORMATS`; by default as the ending, or what the folder holds, tells.

    Raises:
        SourceError: nothing is there, or not what the networks expect.
        ChoiceError: no such format, or a file whose ending tells none.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source).expanduser()
        samples = _reader(path, spec, traits, format)(path, spec, traits)
    else:
        samples = Samples(_as_inputs(source, traits, "the samples"))
    check_samples(samples, traits)
    return samples


def _reader(path: Path, spec: Spec, traits: InputSchema, format: str | None) -> Reader:  # noqa: A002
    if format is not None:
        if format not in FORMATS:
            raise ChoiceError(f"no format is called {format!r}. {suggest(format, FORMATS)}")
        return FORMATS[format]
    if not path.exists():
        raise SourceError(f"{path}: no such file or folder.")
    if path.is_dir():
        return _read_images if _holds_images(path, spec, traits) else _read_as_the_run
    ending = path.suffix.lower()
    if ending in _BY_ENDING:
        return FORMATS[_BY_ENDING[ending]]
    raise ChoiceError(
        f"{path}: {ending or 'no ending'} does not tell what it holds; "
        f"known are {', '.join(_BY_ENDING)}, images and folders. Or say: --format"
    )


def _holds_images(path: Path, spec: Spec, traits: InputSchema) -> bool:
    own_layout = find_reader(spec.data.kind).image_files and spec.data.kind != "image-folder"
    own_path = spec.resolve_path(spec.data.path or "").resolve()
    is_own = own_layout and path.resolve() == own_path
    return traits.kind == "image" and not is_own and bool(list_images(path))


def _read_as_the_run(path: Path, spec: Spec, traits: InputSchema) -> Samples:
    """Read the test split of data in the run's own layout."""
    dataset = read_dataset(spec.data.kind, path, **spec.data.options)
    if dataset.class_names != traits.class_names:
        raise SourceError(
            f"{path}: has {dataset.classes} classes, {', '.join(dataset.class_names[:5])} …; "
            f"the run has {traits.classes}, {', '.join(traits.class_names[:5])} …"
        )
    split: Split = dataset.test
    truth = split.labels if split.truth is None else split.truth
    inputs = split.inputs
    if isinstance(inputs, ImageFiles):
        inputs = replace(inputs, cure=CURE)
    return Samples(inputs, truth, split.ids, str(path), dataset.notes)


def _read_images(path: Path, spec: Spec, traits: InputSchema) -> Samples:  # noqa: ARG001
    """Read one image, or a folder; the folders inside may be classes."""
    _check_images_wanted(path, traits)
    root = path.parent if path.is_file() else _test_part(path)
    names = (path.name,) if path.is_file() else tuple(list_images(root))
    truth = _truth_of_folders(root, names, traits.class_names)
    size = traits.size[0]
    resize = size if traits.resize is None else traits.resize
    files = ImageFiles(root, names, size=size, resize=resize, cure=CURE)
    inputs: Inputs = files
    if traits.channels == 1 and names:
        blocks = files.stream(np.array_split(np.arange(len(files)), len(files) // AT_ONCE + 1))
        inputs = np.concatenate([to_grey(block) for block in blocks])
    return Samples(inputs, truth, np.array(names), str(path))


def _check_images_wanted(path: Path, traits: InputSchema) -> None:
    if traits.kind != "image":
        raise SourceError(
            f"{path}: holds images; the run's networks were trained on {traits.kind}s."
        )
    if traits.size[0] != traits.size[1]:
        raise SourceError(
            f"{path}: the run's images are {traits.size[0]} by {traits.size[1]} pixels, and files "
            "are cut to squares. Give the images as an .npz file."
        )


def _test_part(path: Path) -> Path:
    """Return the part to test on, of a folder that was laid out for training."""
    return (first_of(path, TEST) or path) if first_of(path, TRAIN) else path


def _truth_of_folders(
    root: Path, names: tuple[str, ...], class_names: tuple[str, ...]
) -> NDArray[np.int64] | None:
    folders = [name.split("/")[0] if "/" in name else "" for name in names]
    known = set(class_names)
    if not known.intersection(folders):
        return None
    strange = sorted(set(folders) - known)
    if strange:
        raise SourceError(
            f"{root}: some folders are named as the run's classes, and "
            f"{strange[0] or 'images beside them'!r} is not. Sort all images by class, or none."
        )
    return as_labels(np.array(folders), class_names, where=str(root)).astype(np.int64)


def _read_npz(path: Path, spec: Spec, traits: InputSchema) -> Samples:  # noqa: ARG001
    arrays = load_npz(path)
    found = {what: _first(arrays, names) for what, names in _ROLES.items()}
    if found["inputs"] is None:
        raise SourceError(
            f"{path}: holds {', '.join(arrays) or 'nothing'}; the samples must be called one of "
            f"{', '.join(_INPUTS)}."
        )
    _check_class_names(path, arrays, traits)
    truth = found["truth"]
    if truth is not None:
        truth = truth[:, 0] if truth.ndim == 2 and truth.shape[1] == 1 else truth  # as Keras has it
        truth = as_labels(truth, traits.class_names, where=str(path))
    inputs = _as_inputs(found["inputs"], traits, str(path))
    return Samples(inputs, truth, found["ids"], str(path))


def _read_npy(path: Path, spec: Spec, traits: InputSchema) -> Samples:  # noqa: ARG001
    try:
        with path.open("rb") as file:
            inputs = np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise SourceError(f"{path}: cannot be read as npy: {error}") from error
    return Samples(_as_inputs(inputs, traits, str(path)), name=str(path))


def _first(arrays: Mapping[str, NDArray[Any]], names: Sequence[str]) -> NDArray[Any] | None:
    return next((arrays[name] for name in names if name in arrays), None)


def _check_class_names(path: Path, arrays: Mapping[str, NDArray[Any]], traits: InputSchema) -> None:
    if "class_names" in arrays:
        names = tuple(str(name) for name in arrays["class_names"].tolist())
        if names != traits.class_names:
            raise SourceError(
                f"{path}: names other classes ({', '.join(names[:5])} …) than the run "
                f"({', '.join(traits.class_names[:5])} …)."
            )


def _as_inputs(values: Any, traits: InputSchema, where: str) -> Inputs:
    """Bring arrays or texts into the form that a network is shown, or say what is wrong."""
    if traits.kind == "text" and not isinstance(values, np.ndarray):
        return tuple(tuple(one) if isinstance(one, list) else one for one in values)
    array = np.asarray(values)
    if array.dtype.kind == "U" and array.ndim in (1, 2):
        return tuple(tuple(one) if isinstance(one, list) else one for one in array.tolist())
    if array.dtype == np.uint8 and array.ndim in (3, 4):
        return _as_images(array, traits)
    if array.dtype.kind in "biuf" and array.ndim == 2:
        return array.astype(np.float32)
    raise SourceError(
        f"{where}: images are bytes (uint8) of three or four axes, rows are numbers of two, texts "
        f"are strings; got {array.dtype} of shape {array.shape}. Are the images scaled to 0..1?"
    )


def _as_images(array: NDArray[np.uint8], traits: InputSchema) -> NDArray[np.uint8]:
    images = array[:, np.newaxis] if array.ndim == 3 else array
    last = (*traits.size, traits.channels)
    first = (traits.channels, *traits.size)
    return images.transpose(0, 3, 1, 2) if images.shape[1:] == last != first else images


_ROLES: Final = {"inputs": _INPUTS, "truth": _LABELS, "ids": _IDS}
FORMATS: Final[Mapping[str, Reader]] = {
    "npz": _read_npz,
    "npy": _read_npy,
    "images": _read_images,
    "csv": read_rows(".csv"),
    "tsv": read_rows(".tsv"),
    "parquet": read_rows(".parquet"),
    "txt": read_text_lines,
    "run": _read_as_the_run,
}
_BY_ENDING: Final = {
    **{f".{name}": name for name in ("npz", "npy", "csv", "tsv", "parquet", "txt")},
    **dict.fromkeys(sorted(ENDINGS), "images"),
}
