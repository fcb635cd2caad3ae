"""Measure, save and load the input schema of a run."""

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from accord.data import ImageFiles, InputSchema
from accord.data._dataset import Encoding
from accord.errors import SourceError
from accord.store import Folder

if TYPE_CHECKING:
    from accord.training._prepared_data import PreparedData

SCHEMA_FILE: Final = "samples.json"
FORM: Final = 1  # version of the file; others are refused
SHOWN: Final = 80  # characters of a value in a message


def measure_input_schema(data: "PreparedData") -> InputSchema:
    channels, size = data.shape
    inputs, scale = data.splits["train"].inputs, data.scale
    mean, spread = (None, None) if scale is None else (tuple(one.tolist()) for one in scale)
    return InputSchema(
        kind=data.dataset.kind,
        class_names=data.dataset.class_names,
        channels=channels,
        size=size,
        samples=len(inputs),
        mean=mean,
        spread=spread,
        resize=inputs.resize if isinstance(inputs, ImageFiles) else None,
        columns=data.dataset.columns,
        pairs=isinstance(inputs, tuple) and isinstance(inputs[0], tuple),
    )


def save_input_schema(out: Path, schema: InputSchema) -> None:
    """Save the input schema of a run, or check it against an existing one."""
    document = {"form": FORM, **asdict(schema)}
    if Folder(out).create(SCHEMA_FILE, (json.dumps(document, indent=1) + "\n").encode()):
        return
    stored = load_input_schema(out)
    if stored is None or (name := _first_difference(stored, schema)) is None:
        return
    before, now = (_shorten(getattr(one, name)) for one in (stored, schema))
    raise SourceError(
        f"{out}: the run began with other training data: {name} was {before}, and is {now}. "
        "Restore the data, name another folder with --out, or start anew: --overwrite."
    )


def _first_difference(stored: InputSchema, schema: InputSchema) -> str | None:
    for field in fields(InputSchema):
        before, now = (getattr(one, field.name) for one in (stored, schema))
        if field.name in ("mean", "spread") and None not in (before, now):
            # Two machines may round the last digits differently.
            same = len(before) == len(now) and np.allclose(before, now, rtol=1e-3, atol=1e-6)
        else:
            same = before == now
        if not same:
            return field.name
    return None


def _shorten(value: Any) -> str:
    text = str(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def load_input_schema(out: Path) -> InputSchema | None:
    data = Folder(out).get(SCHEMA_FILE)
    if data is None:
        return None
    try:
        stored = json.loads(data)
        if stored.pop("form") != FORM:
            raise ValueError("it was written by another version of Accord")
        return InputSchema(**{name: _to_tuples(value) for name, value in stored.items()})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(
            f"{out / SCHEMA_FILE}: cannot be read as an input schema ({error}). "
            "Remove it, and it is measured again if the training data are available."
        ) from error


def _to_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return Encoding(**{name: _to_tuples(one) for name, one in value.items()})
    return tuple(_to_tuples(one) for one in value) if isinstance(value, list) else value
