"""Build the training specs of all cells at each scale."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from accord.data.readers import find_reader
from accord.errors import ChoiceError, SourceError
from accord.training import Spec

NOISES: Final = {"sym": "symmetric", "asym": "asymmetric", "native": "none", "clean": "none"}
NOISE_DESCRIPTIONS: Final = {
    "sym": "{} % symmetric noise",
    "asym": "{} % asymmetric noise",
    "native": "{} % of the labels wrong",
    "clean": "clean labels",
}


@dataclass(frozen=True)
class Cell:
    """Data, noise and training variant of an experiment in the paper."""

    data: str  # a key of the table of data
    noise: str  # "sym", "asym", "native" or "clean"
    rate: int  # percent
    variant: str | None = None  # a key of the table of variants
    per_class: int | None = None  # training samples per class

    @property
    def description(self) -> str:
        """Description of the setting."""
        name = protocols()["data"][self.data]["name"]
        parts = [name, NOISE_DESCRIPTIONS[self.noise].format(self.rate)]
        if self.variant is not None:
            variant = protocols()["variant"][self.variant]
            parts.append({**variant, **variant.get(self.data, {})}["description"])
        return ", ".join(parts)


@dataclass(frozen=True)
class Scale:
    """Scale of a reproduction, which determines network sizes and training times."""

    name: str
    description: str
    gpu: bool  # whether it requires one
    repetitions: int


@cache
def protocols() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("protocols.toml").read_text("utf-8"))


SCALES: Final = {
    name: Scale(name, one["description"], one["gpu"], one["repetitions"])
    for name, one in protocols()["scale"].items()
}


def build_spec(cell: Cell, scale: str, *, seed: int = 0) -> Spec:
    """Build the spec of a cell at a scale, with paths relative to the data folder.

    Raises:
        ChoiceError: the cell is not available at that scale.

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
    """Collect the settings that apply, from general to specific."""
    table = protocols()
    variant = table["variant"][cell.variant] if cell.variant else {}
    if scale == "stand-in" and variant.get(scale) is False:
        raise ChoiceError(f"{cell.description}: not available at the scale stand-in")
    own = variant.get(cell.data, {})
    variants = [variant, own, variant.get(scale, {}), own.get(scale, {})]
    if scale == "stand-in":
        return [table["scale"][scale], *variants]
    data = table["data"][cell.data]
    if data.get("text"):
        if scale not in table["text"]:
            raise ChoiceError(
                f"{cell.description}: texts have the scales paper and quick, not {scale}"
            )
        common = [{"train": {"networks": 5}}, table["text"][scale]]
    else:
        common = [table["scale"][scale]]
    location = {"data": {**data["read"], "path": data["folder"]}}
    few = {} if cell.per_class is None else table["few"].get(scale, {})
    return [*common, location, data, data.get(scale, {}), few, *variants]


def _noise_of(cell: Cell, scale: str) -> dict[str, Any]:
    kind = NOISES[cell.noise]
    if scale == "stand-in" and cell.noise == "native":
        kind = "symmetric"  # the digits have no label noise
    return {"kind": kind} if kind == "none" else {"kind": kind, "rate": cell.rate / 100}


def _name_of(cell: Cell, scale: str) -> str:
    parts = [cell.data if scale != "stand-in" else "digits", f"{cell.noise}{cell.rate}"]
    if cell.variant:
        parts.append(cell.variant)
    if cell.per_class:
        parts.append(f"{cell.per_class}-per-class")
    return "-".join(parts)


def resolve_data(spec: Spec, folder: Path) -> Spec:
    return spec if spec.data.path is None else spec.model_copy(update={"root": str(folder)})


def check_data(cell: Cell, spec: Spec, folder: Path) -> None:
    missing = missing_data(spec, folder)
    if missing is None:
        return
    if missing in _weights_of(spec):
        what, origin = (
            f"the weights that {cell.description} starts from are",
            weights_origin(missing),
        )
    else:
        part = "" if missing == spec.data.path else "a part of "
        data = protocols()["data"][cell.data]
        what, origin = f"{part}{data['name']} is", data["from"]
    raise SourceError(
        f"{folder / missing}: {what} missing. Source: {origin}. Put it there, or name another "
        "folder with --data."
    )


def missing_data(spec: Spec, folder: Path) -> str | None:
    """Find the first missing data or weights of a spec in the data folder.

    Checks the names of the files that a reader needs, not their contents.
    """
    path = spec.data.path
    if path is not None:
        if not (folder / path).exists():
            return path
        absent = missing_file(spec.data.kind, folder / path, spec.data.options)
        if absent is not None:
            return f"{path}/{absent}"
    for name in _weights_of(spec):
        if not ((folder / name).is_file() or (folder / name / "config.json").exists()):
            return name
    return None


def weights_origin(name: str) -> str:
    origin: str = protocols()["weights"][name]
    return origin


def _weights_of(spec: Spec) -> list[str]:
    pretrained = [] if spec.train.pretrained is None else [spec.train.pretrained]
    name = spec.train.network.removeprefix("transformers:")
    if name in (spec.train.network, "bert-base-cased"):  # transformers downloads the latter
        return pretrained
    return [*pretrained, name]


def missing_file(kind: str, folder: Path, options: Mapping[str, Any]) -> str | None:
    """Find the first missing file of a reader by its published name."""
    needs = find_reader(kind).needs
    if kind == "imagenet" and options.get("class_list"):
        listed = Path(options["class_list"])  # in the folder, or in the working directory
        needs = (*needs, (str(listed), str(listed.absolute())))
    for spellings in needs:
        if not any(_exists(folder, spelling) for spelling in spellings):
            return spellings[0].rstrip("/")
    return None


def _exists(folder: Path, spelling: str) -> bool:
    # `folder` may be a symbolic link: its siblings are those of the link, not of its target.
    sibling = spelling.startswith("../")
    path = folder.parent / spelling.removeprefix("../") if sibling else folder / spelling
    if "*" in spelling:
        return any(path.parent.glob(path.name))
    if not spelling.endswith("/"):
        return path.exists()
    if not path.is_dir():
        return False
    with os.scandir(path) as entries:  # stops at the first of possibly a million
        return next(entries, None) is not None
