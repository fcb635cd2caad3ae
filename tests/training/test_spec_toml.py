"""What is dumped is read as the same spec."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.training import Spec, dump_spec, parse_spec

SPECS = sorted(Path(__file__).parents[2].glob("examples/*.toml"))
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x7f"), max_size=5)
VALUES = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | NAMES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name)
def test_an_example_survives(path):
    spec = parse_spec(path.read_text())
    assert parse_spec(dump_spec(spec)) == spec


@given(
    st.dictionaries(NAMES.filter(lambda name: name.isidentifier()), VALUES, max_size=3),
    st.floats(1e-6, 1),
    st.lists(st.fixed_dictionaries({"lr": st.floats(1e-9, 1), "options": st.just({})}), min_size=1),
)
def test_any_spec_survives(options, rate, members):
    known = {"kind", "path", "validation", "per_class"}
    data = {key: value for key, value in options.items() if key not in known}
    spec = Spec.model_validate(
        {
            "name": "any",
            "data": {"kind": "digits", **data},
            "noise": {"kind": "symmetric", "rate": rate},
            "train": {
                "epochs": 3,
                "networks": members,
                "options": {"deep": options},
                "schedule": {"kind": "cosine", "cycle": 3},
            },
        }
    )
    assert parse_spec(dump_spec(spec)) == spec
