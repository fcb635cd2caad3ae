"""Read and write specs as TOML."""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from accord.errors import SpecError, suggest
from accord.training._spec import (
    DataSpec,
    NetworkOverrides,
    NoiseSpec,
    OptimizerSpec,
    RecordSpec,
    ScheduleSpec,
    Spec,
    TrainSpec,
)


def load_spec(path: Path) -> Spec:
    """Read a spec from a TOML file.

    Raises:
        SpecError: invalid TOML, an unknown key or an invalid value; the message names the line
            and, for a key, the nearest valid one.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}") from error
    return parse_spec(text, name=str(path))


def parse_spec(text: str, *, name: str = "spec") -> Spec:
    """Read a spec from TOML text.

    >>> parse_spec('''
    ... name = "mine"
    ... data = { kind = "digits" }
    ... [train]
    ... epoch = 40
    ... ''')
    Traceback (most recent call last):
    accord.errors.SpecError: spec, line 5: there is no key train.epoch. Did you mean 'epochs'?
    spec: train.epochs is missing
    """
    try:
        return Spec.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{name}: not valid TOML: {error}") from error
    except ValidationError as error:
        raise SpecError("\n".join(_messages(text, name, error))) from error


def _messages(text: str, name: str, error: ValidationError) -> Iterator[str]:
    for one in sorted(error.errors(), key=lambda one: one["type"] == "missing"):
        location = [part for part in one["loc"] if not _is_branch(part)]
        key = ".".join(str(part) for part in location)
        line = _line_of(text, location)
        where = f"{name}, line {line}" if line else name
        if one["type"] == "extra_forbidden":
            cure = suggest(str(location[-1]), _keys_at(location[:-1]))
            yield f"{where}: there is no key {key}. {cure}"
        elif one["type"] == "missing":
            yield f"{name}: {key} is missing"
        elif key:
            message = one["msg"].removeprefix("Value error, ")
            yield f"{where}: {key}: {message}; got {one['input']!r}"
        else:
            yield f"{name}: {one['msg'].removeprefix('Value error, ')}"


def _is_branch(part: object) -> bool:
    """Check whether part of an error location names a union branch."""
    return isinstance(part, str) and bool(re.search(r"[\[(]|^(int|constrained-int)$", part))


def _keys_at(location: Sequence[Any]) -> list[str]:
    parts: dict[str, type[BaseModel]] = {
        "data": DataSpec,
        "noise": NoiseSpec,
        "train": TrainSpec,
        "record": RecordSpec,
        "optimizer": OptimizerSpec,
        "schedule": ScheduleSpec,
        "networks": NetworkOverrides,
    }
    named = [part for part in location if part in parts]
    return list((parts[named[-1]] if named else Spec).model_fields)


def _line_of(text: str, location: Sequence[Any]) -> int | None:
    """Find the line of a key or of its table.

    tomllib reports no lines, so this searches for the key together with the name of its table, in
    the same line (`schedule = { kind = …`) or in the heading above it (`[train.schedule]`).
    """
    names = [part for part in location if isinstance(part, str)]
    while names:
        for number, line, section in _lines(text):
            above = names[:-1]
            if _assigns(line, names[-1]) and (section == above or _is_inline(line, section, above)):
                return number
            if section == names and line.lstrip().startswith("["):
                return number
        names = names[:-1]
    return None


def _lines(text: str) -> Iterator[tuple[int, str, list[str]]]:
    section: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if head := re.match(r"\s*\[+([^\]]+)\]+", line):
            section = [part.strip() for part in head[1].split(".")]
        yield number, line, section


def _assigns(line: str, key: str) -> bool:
    return bool(re.search(rf"(^|[\s{{,.]){re.escape(key)}\s*=", line))


def _is_inline(line: str, section: list[str], above: list[str]) -> bool:
    inside = above[len(section) :]
    return bool(inside) and section == above[: len(section)] and _assigns(line, inside[0])


def dump_spec(spec: Spec) -> str:
    """Convert a spec to TOML, omitting default values.

    >>> from accord.training import parse_spec
    >>> spec = parse_spec('name = "mine"; data = { kind = "digits" }; train = { epochs = 40 }'
    ...     .replace("; ", chr(10)))
    >>> print(dump_spec(spec), end="")
    name = "mine"
    <BLANKLINE>
    [data]
    kind = "digits"
    <BLANKLINE>
    [train]
    epochs = 40
    """
    values = spec.model_dump(mode="json", exclude_defaults=True)
    parts = {key: value for key, value in values.items() if isinstance(value, dict)}
    lines = [f"{key} = {_value(value)}" for key, value in values.items() if key not in parts]
    for key, part in parts.items():
        lines += ["", f"[{key}]", *_pairs(part)]
    return "\n".join(lines) + "\n"


def _pairs(values: dict[str, Any]) -> list[str]:
    # TOML has no null; leaving the key out means the same.
    return [f"{_key(key)} = {_value(value)}" for key, value in values.items() if value is not None]


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(_pairs(value)) + " }" if value else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)
