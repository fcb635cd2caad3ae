"""Compare the tables of docs/reference/python.md with the code.

A table follows a comment and holds names with their parameters and the first paragraph of their
docstrings: the `__all__` of a module, or the public attributes of a class.

    <!-- exports: accord.analysis -->
    <!-- attributes: accord.Record -->

    python docs/test_reference.py --update

rewrites the tables.
"""

import dataclasses
import importlib
import inspect
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import accord

PAGE = Path(__file__).parent / "reference/python.md"
TABLE = re.compile(
    r"^(?P<comment><!-- (?P<kind>exports|attributes): (?P<name>\S+) -->)\n\n"
    r"(?P<table>(?:^\|.*\n)+)",
    re.M,
)
LONGEST_DEFAULT = 24  # characters; longer defaults are shown as …


def public_modules():
    """Yield the names of all modules without a leading underscore in their path."""
    yield "accord"
    for module in pkgutil.walk_packages(accord.__path__, "accord.", onerror=lambda _: None):
        if "._" not in module.name and "__main__" not in module.name:
            yield module.name


def exports_of(door):
    """Return the names in `__all__`, classes last; None if the module cannot be imported here."""
    try:
        module = importlib.import_module(door)
    except ImportError:
        return None
    return sorted(getattr(module, "__all__", ()), key=lambda name: (name[:1].isupper(), name))


def table_of(kind, name):
    """Return the table of a module or class in Markdown."""
    if kind == "exports":
        module = importlib.import_module(name)
        rows = [row_of(one, getattr(module, one)) for one in exports_of(name)]
    else:
        module, _, attribute = name.rpartition(".")
        rows = [
            row_of(*one)
            for one in attributes_of(getattr(importlib.import_module(module), attribute))
        ]
    return "".join(f"{row}\n" for row in ["| name | |", "|---|---|", *rows])


def attributes_of(kind):
    """Return the public properties and methods of a class, properties first."""
    found = [(name, getattr(kind, name)) for name in dir(kind) if not name.startswith("_")]
    return sorted(found, key=lambda one: (callable(one[1]), one[0]))


def row_of(name, value):
    """Return one row: the name with its parameters, a summary, and the fields of a dataclass."""
    parameters = parameters_of(value) if inspect.isfunction(value) else ""
    documented = inspect.isfunction(value) or inspect.isclass(value) or isinstance(value, property)
    parts = [summary_of(value, name) if documented else type_name(value)]
    if inspect.isclass(value) and dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value) if field.name[0] != "_"]
        others = [one for one, _ in attributes_of(value) if one not in fields]
        parts += [listed("Fields", fields), listed("Also", others)]
    return f"| `{name}{parameters}` | {' '.join(filter(None, parts))} |"


def listed(title, names):
    return f"{title}: {', '.join(f'`{name}`' for name in names)}." if names else ""


def parameters_of(function):
    """Return the parameters without types, as `(labels, *, classes, seed=0)`."""
    parts, keyword_only = [], False
    parameters = inspect.signature(function).parameters
    for parameter in [one for one in parameters.values() if one.name not in ("self", "cls")]:
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            parts.append("*")
        keyword_only |= parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
        default = ""
        if parameter.default is not parameter.empty:
            shown = repr(parameter.default)
            plain = isinstance(parameter.default, (str, int, float, tuple, type(None)))
            default = "=" + (shown if plain and len(shown) <= LONGEST_DEFAULT else "…")
        parts.append(stars.get(parameter.kind, "") + parameter.name + default)
    return f"({', '.join(parts)})"


def summary_of(value, name):
    """Return the first paragraph of a docstring, unless Python wrote it for a dataclass."""
    text = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    return "" if text.startswith(f"{name}(") else text.replace("|", "\\|")


def type_name(value):
    return f"A {type(value).__name__}." if type(value).__module__ == "builtins" else ""


def page_with_tables(text):
    """Return the page with the tables as they should be."""
    return TABLE.sub(
        lambda found: f"{found['comment']}\n\n{table_of(found['kind'], found['name'])}", text
    )


TABLES = {
    (found["kind"], found["name"]): found["table"] for found in TABLE.finditer(PAGE.read_text())
}


@pytest.mark.parametrize(("kind", "name"), TABLES)
def test_the_table_lists_what_the_code_defines(kind, name):
    assert TABLES[kind, name] == table_of(kind, name), "run: python docs/test_reference.py --update"


def test_every_door_has_a_table():
    doors = {name for name in public_modules() if exports_of(name)}
    assert {name for kind, name in TABLES if kind == "exports"} == doors


def test_a_changed_name_is_noticed():
    table = table_of("exports", "accord.rules")
    assert "| `find_rule(name)` |" in table
    wrong = table.replace("find_rule", "find_rules")
    text = f"<!-- exports: accord.rules -->\n\n{wrong}\nText.\n"
    assert page_with_tables(text) == text.replace(wrong, table)


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit(__doc__)
    PAGE.write_text(page_with_tables(PAGE.read_text()))
