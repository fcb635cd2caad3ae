from pathlib import Path

import numpy as np
import pytest
import slow_rules
from hypothesis import given
from hypothesis import strategies as st
from voting import draw_rows

import accord.rules
from accord.errors import ChoiceError, ProbabilitiesMissing, SourceError, TruthMissing
from accord.rules import Rule, all_rules, find_rule, load_rule
from accord.store import ArrayReader, SampleInfo
from accord.testing import RuleContract
from accord.testing._contracts import reader_of, small_records

for _name, _rule in all_rules().items():
    _class = f"Test{_name.title().replace('-', '')}"
    _members = {"rule": _rule, "by_definition": staticmethod(slow_rules.BY_NAME[_name])}
    globals()[_class] = type(_class, (RuleContract,), _members)

LABELS = np.array([[[0, 2], [0, 2], [1, 0]], [[0, 1], [1, 2], [1, 1]]], np.uint8)


def rows(**sample_info):
    return ArrayReader(LABELS, SampleInfo(samples=2, classes=3, **sample_info))


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


def test_max_agreement_remembers_what_the_networks_forgot():
    predicted = find_rule("max-agreement")(rows())
    np.testing.assert_array_equal(predicted.labels, [0, 2])
    np.testing.assert_array_equal(predicted.scores, [0.5, 0.5])
    np.testing.assert_array_equal(find_rule("majority")(rows()).labels, [1, 0])


def test_the_oracle_takes_the_first_of_equally_good_epochs():
    oracle = find_rule("oracle-best-epoch")
    for truth, epoch in (([0, 2], 1), ([2, 2], 1), ([0, 0], 0)):
        assert oracle(rows(truth=np.array(truth))).epoch == epoch


def test_an_unknown_rule_gets_the_nearest_offered():
    with pytest.raises(ChoiceError, match=r"'max-agrement'\. Did you mean 'max-agreement'"):
        find_rule("max-agrement")
    with pytest.raises(ChoiceError, match=r"There are: before-overfit, .*max-agreement.*single"):
        find_rule("zzz")


@pytest.mark.parametrize("name", [name for name, rule in all_rules().items() if rule.by_sample])
@given(small_records(), st.data())
def test_a_rule_by_sample_predicts_a_range_as_it_predicts_the_whole(name, record, data):
    cut = slice(data.draw(st.integers(0, record.labels.shape[2] - 1)), None)
    rows, rule = reader_of(record), find_rule(name)
    whole, part = rule(rows), rule(rows.select(samples=cut))
    np.testing.assert_array_equal(part.labels, whole.labels[cut])
    np.testing.assert_array_equal(part.scores, whole.scores[cut])


def test_a_rule_raises_if_its_data_are_missing():
    with pytest.raises(TruthMissing, match="the record has no true labels"):
        find_rule("oracle-best-epoch")(rows())
    for name in ("probability-average", "soft-agreement"):
        with pytest.raises(ProbabilitiesMissing, match="the record has labels only"):
            find_rule(name)(rows())


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


class Contrary(Rule):
    """A rule that breaks its contract: it predicts the first epoch of the first network."""

    name = "contrary"
    reads = "last"

    def __call__(self, rows):
        return find_rule("single")(rows.select(epochs=[0]))


class ContraryContract(RuleContract):
    rule = Contrary()

    def by_definition(self, record):
        return record.labels[-1, 0].tolist()


@pytest.mark.parametrize(
    "law",
    [
        "test_equals_its_definition",
        "test_the_order_of_networks_has_no_effect",
        "test_the_order_of_epochs_has_no_effect",
    ],
)
def test_the_contract_can_fail(law):
    with pytest.raises(AssertionError, match="not equal"):
        getattr(ContraryContract(), law)()
