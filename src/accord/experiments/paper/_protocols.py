"""How every cell is trained, at each scale: from a table of settings to a spec."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from accord.data.readers import find_reader
from accord.data.readers._locate import Spellings
from accord.errors import ChoiceError, SourceError
from accord.training.spec import Spec


def missing_file(kind: str, folder: Path, options: Mapping[str, Any]) -> str | None:
    """Return the first file that a reader would look for in vain, by its published name, or None.

    Looks at names alone; whether the files are whole, their reader tells.

    Args:
        kind: a key of `accord.data.readers.READERS`.
        folder: where the data should be.
        options: those of the reader.
    """
    for spellings in _needs_of(kind, options):
        if not any(_is_there(folder, spelling) for spelling in spellings):
            return spellings[0].rstrip("/")
    return None


def _is_there(folder: Path, spelling: str) -> bool:
    # The folder may be a link: what lies beside it is beside the link, not beside its end.
    beside = spelling.startswith("../")
    path = folder.parent / spelling.removeprefix("../") if beside else folder / spelling
    if "*" in spelling:
        return any(path.parent.glob(path.name))
    if not spelling.endswith("/"):
        return path.exists()
    if not path.is_dir():
        return False
    with os.scandir(path) as entries:  # one is enough, of a million
        return next(entries, None) is not None


def _needs_of(kind: str, options: Mapping[str, Any]) -> tuple[Spellings, ...]:
    needs = find_reader(kind).needs
    if kind == "imagenet" and options.get("class_list"):
        listed = Path(options["class_list"])  # in the folder, or from where the command runs
        return (*needs, (str(listed), str(listed.absolute())))
    return needs


NOISES: Final = {"sym": "symmetric", "asym": "asymmetric", "native": "none", "clean": "none"}
ON_THE_HUB: Final = ("bert-base-cased",)  # transformers itself knows where its files are
IN_WORDS: Final = {
    "sym": "{} % symmetric noise",
    "asym": "{} % asymmetric noise",
    "native": "{} % of the labels wrong",
    "clean": "clean labels",
}


@dataclass(frozen=True)
class Cell:
    """One setting of the paper: data, noise, and what is done differently."""

    data: str  # a key of the table of data
    noise: str  # "sym", "asym", "native" or "clean"
    rate: int  # percent
    variant: str | None = None  # a key of the table of variants
    per_class: int | None = None  # train on so many samples of each class

    @property
    def says(self) -> str:
        """The setting in words."""
        words = [sources()[self.data].name, IN_WORDS[self.noise].format(self.rate)]
        if self.variant is not None:
            variant = protocols()["variant"][self.variant]
            words.append({**variant, **variant.get(self.data, {})}["says"])
        return ", ".join(words)


@dataclass(frozen=True)
class Scale:
    """How much is spent on a cell."""

    name: str
    says: str
    gpu: bool
    repetitions: int


@dataclass(frozen=True)
class Source:
    """A data set: where it is looked for, and where it comes from."""

    name: str
    folder: str
    comes_from: str
    text: bool


@cache
def protocols() -> dict[str, Any]:
    """Return the table of settings that comes with Accord."""
    return tomllib.loads(files(__package__).joinpath("protocols.toml").read_text("utf-8"))


@cache
def sources() -> dict[str, Source]:
    """Return the data sets, by name."""
    return {
        name: Source(one["name"], one["folder"], one["from"], one.get("text", False))
        for name, one in protocols()["data"].items()
    }


def _scales() -> dict[str, Scale]:
    return {
        name: Scale(name, one["says"], one["gpu"], one["repetitions"])
        for name, one in protocols()["scale"].items()
    }


SCALES: Final = _scales()


def build_spec(cell: Cell, scale: str, *, seed: int = 0) -> Spec:
    """Return what a cell trains at a scale; its paths are inside the folder of the data.

    Raises:
        ChoiceError: the cell cannot be had at that scale.

    >>> build_spec(Cell("cifar10", "sym", 40), "paper").train.network
    'densenet121'
    """
    parts: dict[str, dict[str, Any]] = {
        "data": {},
        "noise": _noise_of(cell, scale),
        "train": {},
        "record": {"probabilities": True},
    }
    for layer in _layers(cell, scale):
        for part, settings in parts.items():
            settings.update(layer.get(part, {}))
    if cell.per_class is not None:
        parts["data"]["per_class"] = cell.per_class
    parts["train"]["seed"] = seed
    return Spec.model_validate({"name": _name_of(cell, scale), **parts})


def _layers(cell: Cell, scale: str) -> list[dict[str, Any]]:
    """Return the settings that apply, the more particular ones later."""
    table = protocols()
    variant = table["variant"][cell.variant] if cell.variant else {}
    if scale == "stand-in" and variant.get(scale) is False:
        raise ChoiceError(f"{cell.says}: there is no stand-in for that")
    own = variant.get(cell.data, {})
    variants = [variant, own, variant.get(scale, {}), own.get(scale, {})]
    if scale == "stand-in":
        return [table["scale"][scale], *variants]
    data = table["data"][cell.data]
    if data.get("text"):
        if scale not in table["text"]:
            raise ChoiceError(f"{cell.says}: texts have the scales paper and quick, not {scale}")
        common = [{"train": {"networks": 5}}, table["text"][scale]]
    else:
        common = [table["scale"][scale]]
    place = {"data": {**data["read"], "path": data["folder"]}}
    few = {} if cell.per_class is None else table["few"].get(scale, {})
    return [*common, place, data, data.get(scale, {}), few, *variants]


def _noise_of(cell: Cell, scale: str) -> dict[str, Any]:
    kind = NOISES[cell.noise]
    if scale == "stand-in" and cell.noise == "native":
        kind = "symmetric"  # the digits have no wrong labels of their own
    return {"kind": kind} if kind == "none" else {"kind": kind, "rate": cell.rate / 100}


def _name_of(cell: Cell, scale: str) -> str:
    words = [cell.data if scale != "stand-in" else "digits", f"{cell.noise}{cell.rate}"]
    if cell.variant:
        words.append(cell.variant)
    if cell.per_class:
        words.append(f"{cell.per_class}-per-class")
    return "-".join(words)


def place_spec(spec: Spec, folder: Path) -> Spec:
    """Return a spec whose paths, if it has any, lead into the folder of the data."""
    return spec if spec.data.path is None else spec.model_copy(update={"root": str(folder)})


def check_data(cell: Cell, spec: Spec, folder: Path) -> None:
    """Refuse a spec whose data are not in the folder, and say where they come from.

    Raises:
        SourceError: data or weights are missing.
    """
    missing = missing_data(spec, folder)
    if missing is None:
        return
    if missing in _weights_of(spec):
        raise SourceError(
            f"{folder / missing}: {cell.says} starts from these weights, and they are not there. "
            f"They come from {weights_from(missing)}. Put them there, or name another folder with "
            "--data."
        )
    source = sources()[cell.data]
    part = "" if missing == spec.data.path else "this part of "
    raise SourceError(
        f"{folder / missing}: {part}{source.name} is not there. It comes from "
        f"{source.comes_from}. Put it there, or name another folder with --data."
    )


def missing_data(spec: Spec, folder: Path) -> str | None:
    """Return what of a spec's data and weights is not in the folder, or None.

    Looks at the names of the files that a reader needs, and does not read them.
    """
    path = spec.data.path
    if path is not None:
        if not (folder / path).exists():
            return path
        absent = missing_file(spec.data.kind, folder / path, spec.data.options)
        if absent is not None:
            return f"{path}/{absent}"
    return next((one for one in _weights_of(spec) if not _has_weights(folder / one)), None)


def weights_from(name: str) -> str:
    """Return where weights come from, by their name in the folder of the data."""
    known: str = protocols()["weights"][name]
    return known


def _weights_of(spec: Spec) -> list[str]:
    """Return the files and folders of weights that a spec starts from, inside the data's folder."""
    pretrained = [] if spec.train.pretrained is None else [spec.train.pretrained]
    name = spec.train.network.removeprefix("transformers:")
    if name == spec.train.network or name in ON_THE_HUB:
        return pretrained
    return [*pretrained, name]


def _has_weights(path: Path) -> bool:
    return path.is_file() or (path / "config.json").exists()
