"""A spec as TOML text, as a person would write it."""

import json
import re
from typing import Any

from accord.training.spec import Spec


def dump_spec(spec: Spec) -> str:
    """Return TOML that `parse_spec` reads as the same spec; defaults are left out.

    >>> from accord.training.spec import parse_spec
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
    asked = spec.model_dump(mode="json", exclude_defaults=True)
    parts = {key: value for key, value in asked.items() if isinstance(value, dict)}
    lines = [f"{key} = {_value(value)}" for key, value in asked.items() if key not in parts]
    for key, values in parts.items():
        lines += ["", f"[{key}]", *_pairs(values)]
    return "\n".join(lines) + "\n"


def _pairs(values: dict[str, Any]) -> list[str]:
    # TOML cannot say that there is nothing; a key that is not there says it.
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
