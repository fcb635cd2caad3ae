from pathlib import Path

import numpy as np
import pytest
import slow_rules
from voting import draw_rows

import accord.rules
from accord.errors import ChoiceError, SourceError
from accord.rules import all_rules, find_rule, load_rule


def test_the_rules_of_the_design_are_all_found():
    assert {
        "single",
        "majority",
        "probability-average",
        "max-agreement",
        "soft-agreement",
        "weighted-agreement",
        "dawid-skene",
        "oracle-best-epoch",
    } <= all_rules().keys()


def test_every_file_of_a_rule_is_registered():
    files = {path.stem for path in Path(accord.rules.__file__).parent.glob("[a-z]*.py")}
    assert (
        files
        == {name.replace("-", "_") for name in all_rules()}
        == {name.replace("-", "_") for name in slow_rules.BY_NAME}
    )


def test_every_rule_is_named_as_its_file():
    for name, rule in all_rules().items():
        assert type(rule).__module__ == f"accord.rules.{name.replace('-', '_')}"


def test_an_unknown_rule_gets_the_nearest_offered():
    with pytest.raises(ChoiceError, match=r"'max-agrement'\. Did you mean 'max-agreement'"):
        find_rule("max-agrement")
    with pytest.raises(ChoiceError, match=r"There are: before-overfit, .*max-agreement.*single"):
        find_rule("zzz")


def test_what_a_rule_learnt_is_loaded_as_that_rule(tmp_path):
    path = tmp_path / "learnt.npz"
    for name in ("weighted-agreement", "dawid-skene"):
        fitted = find_rule(name).fit(draw_rows())
        fitted.save(path)
        loaded = load_rule(path)
        assert type(loaded) is type(fitted)
        np.testing.assert_array_equal(loaded(draw_rows()).scores, fitted(draw_rows()).scores)
    for name in ("majority", "nonsense"):
        np.savez(path, rule=np.array(name))
        with pytest.raises(SourceError, match=rf"learnt\.npz: no rule called '{name}' is fitted"):
            load_rule(path)
