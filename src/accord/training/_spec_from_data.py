"""Write the spec of a data set that comes without one."""

import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np

from accord._files import load_npz
from accord.data._column_kinds import choose_columns, find_label
from accord.data._image_files import measure_images
from accord.data.readers.image_folder import TEST, TRAIN, first_of, list_images
from accord.data.readers.tables import load_table
from accord.errors import ChoiceError, SourceError, counted
from accord.training._spec import Spec
from accord.training._spec_toml import dump_spec, parse_spec

TABLES: Final = (".csv", ".tsv", ".parquet")
HELD_OUT: Final = 0.2
EPOCHS: Final = 40
# Measured with a fifth of the labels wrong. A perceptron memorises a small table at 1e-3 before an
# audit sees its errors; a small convolutional network does not learn 480 images in 40 epochs.
LEARNING_RATES: Final = {"mlp": 3e-4, "small-cnn": 5e-3, "resnet18": 1e-3}
SMALL_IMAGE: Final = 64  # pixels of the shorter side, up to which small networks train well
_CLASSES_NAMED: Final = 8


def spec_from_data(
    path: Path,
    *,
    label: str | None = None,
    cross_fit: int | None = None,
    drop_unlabelled: bool = False,
) -> tuple[Spec, tuple[str, ...]]:
    """Write the spec for a table, a folder of images or an .npz file.

    The spec records the test and the training split of five networks; with `cross_fit`, of the
    training samples alone, which are then all samples.

    Args:
        path: a .csv, .tsv or .parquet file, a folder of class folders, or an .npz file.
        label: the column of labels of a table; by default one named like labels.
        cross_fit: the number of folds.
        drop_unlabelled: leave out rows of a table that have no label.

    Returns:
        The spec, and what was chosen, in sentences.

    Raises:
        ChoiceError: the kind of data is unknown, or no column is known to hold the labels.
        SourceError: the data are missing or damaged, or a column cannot be used.
    """
    data, train, notes = _choose(path, label, drop_unlabelled)
    if cross_fit is not None and "held_out" in data:
        data["held_out"] = 0
    held_out = data.get("held_out")
    tested = f", {100 * held_out:g} % of the samples held out to test" if held_out else ""
    if cross_fit is not None:
        tested = f", without each of {cross_fit} folds"
    notes.append(f"5 × {train['network']}, {counted(train['epochs'], 'epoch')}{tested}")
    train["optimizer"] = {"kind": "adamw", "lr": LEARNING_RATES[train["network"]]}
    splits = ["test", "train"] if held_out != 0 and cross_fit is None else ["train"]
    record = {"splits": splits, "probabilities": cross_fit is not None, "checkpoints": 10}
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.resolve().stem).strip("-._") or "data"
    values: dict[str, Any] = {
        "name": name,
        "data": data | {"path": str(path)} | ({"cross_fit": cross_fit} if cross_fit else {}),
        "train": train,
        "record": record,
    }
    if not path.is_absolute():
        values["root"] = str(Path.cwd())
    return parse_spec(dump_spec(Spec.model_validate(values)), name=str(path)), tuple(notes)


def is_data(path: Path) -> bool:
    """Check whether a path names data, and not a spec."""
    return path.is_dir() or path.suffix.lower() not in (".toml", "")


def _choose(path: Path, label: str | None, drop_unlabelled: bool) -> "Parts":
    if not path.exists():
        raise SourceError(f"{path}: no such file or folder.")
    ending = path.suffix.lower()
    table = ending
    if path.is_dir():
        table = next((one for one in TABLES if (path / f"train{one}").is_file()), "")
    if table in TABLES:
        return _for_table(path, table, label, drop_unlabelled)
    if label is not None or drop_unlabelled:
        raise ChoiceError("--label and --drop-unlabelled are for tables: .csv, .tsv or .parquet")
    if path.is_dir():
        return _for_images(path)
    if ending == ".npz":
        return _for_arrays(path)
    raise ChoiceError(
        f"{path}: expected a spec (.toml), a table ({', '.join(TABLES)}), an .npz file or a "
        "folder of images"
    )


Parts = tuple[dict[str, Any], dict[str, Any], list[str]]  # [data], [train], what was chosen


def _for_table(path: Path, ending: str, label: str | None, drop_unlabelled: bool) -> Parts:
    file = path if path.is_file() else path / f"train{ending}"
    table = load_table(file, ending)
    label = find_label(table, label)
    kinds = choose_columns(table, label)
    data: dict[str, Any] = {"kind": ending[1:], "label": label, **kinds.options, "missing": "fill"}
    if drop_unlabelled:
        data["unlabelled"] = "drop"
    if path.is_file():
        data["held_out"] = HELD_OUT
    absent = table.missing(label)
    labels = table.choose(np.flatnonzero(~absent)).labels(label)
    train = {"network": "mlp", "epochs": EPOCHS, "batch": _batch(len(labels))}
    return data, train, [f"{len(table)} rows, labels: {label} ({_counts(labels)})", *kinds.notes()]


def _for_images(path: Path) -> Parts:
    train, test = (first_of(path, names) for names in (TRAIN, TEST))
    root = train or path
    names = list_images(root)
    if not names:
        raise SourceError(
            f"{path}: holds no images, and no train.csv. Expected one folder of images per class; "
            "a table is named itself: FOLDER/FILE.csv"
        )
    data: dict[str, Any] = {"kind": "image-folder"}
    if train is None or test is None:
        data["held_out"] = HELD_OUT
    side = measure_images([root / name for name in names])
    small = side <= SMALL_IMAGE
    size = side if small else 112
    data |= {"size": size, "resize": size if small else 128}
    network: dict[str, Any] = {"network": "small-cnn", "augment": ["shift"]}
    if not small:
        network = {"network": "resnet18", "options": {"stem": "imagenet"}}
        network |= {"augment": ["resized-crop"]}
    classes = [name.split("/")[0] for name in names]
    shape = f"{size} × {size} pixels"
    notes = [f"{len(names)} images of {shape}, labels: folders ({_counts(classes)})"]
    return data, network | {"epochs": EPOCHS, "batch": _batch(len(names))}, notes


def _for_arrays(path: Path) -> Parts:
    arrays = load_npz(path)
    data: dict[str, Any] = {"kind": "npz"}
    name = next((one for one in ("train_inputs", "x_train", "inputs") if one in arrays), None)
    if name is None:
        raise SourceError(
            f"{path}: holds {', '.join(arrays) or 'nothing'}; expected inputs and labels, or "
            "train_inputs, train_labels, test_inputs and test_labels."
        )
    if name == "inputs":
        data["held_out"] = HELD_OUT
    inputs = arrays[name]
    if inputs.dtype.kind == "U":
        raise SourceError(
            f"{path}: holds texts. Write them as a column of a .csv file beside the labels; or "
            "name a network of transformers in a spec."
        )
    train: dict[str, Any] = {"network": "mlp"}
    if inputs.ndim > 2:
        train = {"network": "small-cnn", "augment": ["shift"]}
    shape = " × ".join(map(str, inputs.shape[1:]))
    kind = "rows" if inputs.ndim == 2 else "images"
    notes = [f"{len(inputs)} {kind} of {shape}"]
    return data, train | {"epochs": EPOCHS, "batch": _batch(len(inputs))}, notes


def _batch(samples: int) -> int:
    """Choose a batch size that gives small data sets enough steps per epoch."""
    return int(2 ** np.clip(np.round(np.log2(samples / 16)), 5, 7))


def _counts(labels: list[str]) -> str:
    counts = Counter(labels).most_common()
    more = f", … {counted(len(counts), 'class')} in all" if len(counts) > _CLASSES_NAMED else ""
    return ", ".join(f"{name}: {count}" for name, count in counts[:_CLASSES_NAMED]) + more
