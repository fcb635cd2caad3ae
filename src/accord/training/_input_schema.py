"""What all samples of a run have in common: kept with it, so that new ones can be shown to it."""

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from accord.data import ImageFiles, InputSchema
from accord.errors import SourceError
from accord.store._storage import Folder
from accord.training._prepared_data import PreparedData

FILE: Final = "samples.json"
FORM: Final = 1  # of that file; others are refused


def find_input_schema(material: PreparedData) -> InputSchema:
    """Measure the samples that a run trains on."""
    channels, size = material.shape
    inputs, scale = material.splits["train"].inputs, material.scale
    mean, spread = (None, None) if scale is None else (tuple(one.tolist()) for one in scale)
    return InputSchema(
        kind=material.dataset.kind,
        class_names=material.dataset.class_names,
        channels=channels,
        size=size,
        samples=len(inputs),
        mean=mean,
        spread=spread,
        resize=inputs.resize if isinstance(inputs, ImageFiles) else None,
        columns=material.dataset.columns,
        pairs=isinstance(inputs, tuple) and isinstance(inputs[0], tuple),
    )


def save_input_schema(out: Path, traits: InputSchema) -> None:
    """Write what the samples have in common beside a run's spec.

    Raises:
        SourceError: the run began with other samples.
    """
    document = {"form": FORM, **asdict(traits)}
    if not Folder(out).create(FILE, (json.dumps(document, indent=1) + "\n").encode()):
        check_input_schema(out, traits)


def check_input_schema(out: Path, traits: InputSchema) -> None:
    """Refuse samples that are not those that a run began with, as far as it is known.

    Raises:
        SourceError: they differ, or what is kept of them is damaged.
    """
    there = load_input_schema(out)
    if there is None or (changed := _first_change(there, traits)) is None:
        return
    before, now = (_short(getattr(one, changed)) for one in (there, traits))
    raise SourceError(
        f"{out}: the run began with other training data: {changed} was {before}, and is {now}. "
        "Put the data back, or train anew: name another --out."
    )


def _first_change(there: InputSchema, traits: InputSchema) -> str | None:
    for field in fields(InputSchema):
        before, now = (getattr(one, field.name) for one in (there, traits))
        if field.name in ("mean", "spread") and None not in (before, now):
            # Two machines may round the last digits otherwise.
            same = len(before) == len(now) and np.allclose(before, now, rtol=1e-3, atol=1e-6)
        else:
            same = before == now
        if not same:
            return field.name
    return None


def _short(value: Any) -> str:
    told = str(value)
    return told if len(told) <= 80 else f"{told[:79]}…"


def load_input_schema(out: Path) -> InputSchema | None:
    """Return what `save_input_schema` wrote, or None.

    Raises:
        SourceError: the file is damaged, or of another version of Accord.
    """
    data = Folder(out).get(FILE)
    if data is None:
        return None
    try:
        found = json.loads(data)
        if found.pop("form") != FORM:
            raise ValueError("it was written by another version of Accord")
        return InputSchema(**{name: _frozen(value) for name, value in found.items()})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(
            f"{out / FILE}: does not say what the samples were like ({error}). "
            "Remove it, and they are measured again, if the training data are there."
        ) from error


def _frozen(value: Any) -> Any:
    return tuple(_frozen(one) for one in value) if isinstance(value, list) else value
