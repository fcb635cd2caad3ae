"""What the page says of trust, networks and forgetting is what was measured."""

import re

import numpy as np
import pytest

from accord._record import Record
from accord.analysis import CorruptReader
from accord.report._cached_results import Measured
from accord.report._figures import coverage_at
from accord.report._trust_text import (
    KINDS,
    MOST_NETWORKS,
    forgotten_finding,
    networks_finding,
    trust_finding,
)
from accord.report.html import report_page
from accord.store import ArrayReader, make_sample_info


def section(text, name):
    """The text of one section, without its tags; None if it is not there."""
    found = re.search(
        rf'<section id="{name}">\n<h2>.*?(?=<section>\n<h2>|<section id|</main>)', text, re.S
    )
    return None if found is None else re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", found[0]))


@pytest.fixture(scope="module")
def spoilt(hard):
    """Five networks, a sixth that guesses and a seventh that says one class."""
    return Record(
        CorruptReader(CorruptReader(hard.reader, kind="random", count=1), kind="constant", count=1)
    )


def with_facts(record, **sample_info):
    made = make_sample_info(samples=record.samples, classes=record.classes, **sample_info)
    return Record(ArrayReader(record.labels[:], made))


def test_the_page_tells_how_much_is_answered_at_small_risks(hard):
    curve = hard.risk_coverage()
    text = section(report_page(hard), "trust")
    for risk in (0.05, 0.01):
        share = 100 * coverage_at(curve, risk)
        assert f"with {100 * risk:g} % wrong {share:.1f} % of the samples" in text
    assert "trained on these very samples" not in text


def test_all_and_none_are_told_in_words(make_record):
    perfect = trust_finding(Measured(make_record(3, 4, 20, 3, wrong=0)))
    assert [one["answered"] for one in perfect["risks"]] == ["all", "all"]
    sample_info = make_sample_info(samples=4, classes=2, truth=[1, 1, 1, 1])
    hopeless = Record(ArrayReader(np.zeros((2, 3, 4), int), sample_info))
    assert [one["answered"] for one in trust_finding(Measured(hopeless))["risks"]] == ["none"] * 2


def test_samples_that_were_trained_on_are_pointed_out(hard):
    trained = with_facts(hard, truth=hard.truth, split="train")
    assert trust_finding(Measured(trained))["trained_on"]
    held_out = with_facts(hard, truth=hard.truth, given=hard.truth, split="validation")
    assert not trust_finding(Measured(held_out))["trained_on"]
    assert "trained on these very samples" in section(report_page(trained), "trust")


def test_without_truth_there_is_neither_trust_nor_forgetting_but_a_way_to_it(hard):
    blind = with_facts(hard)
    text = report_page(blind)
    assert section(text, "trust") is None
    assert section(text, "forgetting") is None
    assert "--verify 300" in text
    told = section(text, "members")
    assert "All 5 vote with the others." in told
    assert "accuracy" not in told


def test_networks_are_listed_with_agreement_and_accuracy(hard):
    told = networks_finding(Measured(hard))
    last = hard.labels[:][:, -1]
    for row, member in zip(told["rows"], hard.network_health(), strict=True):
        assert (row["network"], row["kind"]) == (member.network, "good")
        assert row["agreement"] == row["at"] == member.agreement
        assert row["accuracy"] == pytest.approx((last[member.network] == hard.truth).mean())
    assert told["left_out"] is None
    text = section(report_page(hard), "members")
    row = told["rows"][2]
    assert f" 2 {row['agreement']:.2f} {100 * row['accuracy']:.2f} %" in text


def test_bad_networks_come_first_with_what_leaving_them_out_changes(spoilt, hard):
    told = networks_finding(Measured(spoilt))
    assert [(one["network"], one["kind"]) for one in told["rows"]][:3] == [
        (5, "random"),
        (6, "constant"),
        (0, "good"),
    ]
    moved = (spoilt.predict().labels != hard.predict().labels).sum()
    text = section(report_page(spoilt), "members")
    assert "2 of 7 do not vote with the rest: network 5 (random), network 6 (constant)." in text
    assert f"Without them, max agreement gives another class for {moved} of 1,000 samples" in text
    for rule, name in (("max-agreement", "max agreement"), ("majority", "the majority vote")):
        before, after = (
            100 * (one.predict(rule).labels == hard.truth).mean() for one in (spoilt, hard)
        )
        assert f"{name} goes from {before:.1f} % right to {after:.1f} %" in text
    assert "To leave them out: --networks 0,1,2,3,4" in text
    assert KINDS["random"] in text
    assert KINDS["constant"] in text


def test_one_bad_network_of_a_record_without_truth(hard):
    blind = with_facts(hard)
    text = section(
        report_page(Record(CorruptReader(blind.reader, kind="random", count=1))), "members"
    )
    assert "Without it, max agreement gives another class for" in text
    assert "goes from" not in text
    assert "To leave it out: " in text


def test_every_kind_of_network_is_explained():
    from typing import get_args

    from accord.analysis._network_health import Kind

    assert set(KINDS) == set(get_args(Kind))


def test_a_network_below_chance_stays_on_the_scale():
    labels = np.array([[[0, 1, 0, 1]], [[1, 0, 1, 0]]])
    opposed = Record(
        ArrayReader(labels, make_sample_info(samples=4, classes=2, truth=[0, 1, 0, 1]))
    )
    rows = networks_finding(Measured(opposed))["rows"]
    assert [(one["agreement"], one["at"]) for one in rows] == [(-1, 0), (-1, 0)]


def test_what_cannot_be_told_of_networks_is_said(make_record, make_hard):
    apart = make_record(3, 2, 50, 4, wrong=1)
    labels = np.stack([np.full((2, 50), n) for n in range(3)])
    sample_info = make_sample_info(samples=50, classes=4, truth=apart.truth)
    told = networks_finding(Measured(Record(ArrayReader(labels, sample_info))))
    assert told["sentence"].startswith("No two networks agree beyond chance")
    two = networks_finding(Measured(make_hard(2, 4)))
    assert "Of two that did not, it could not be told" in two["sentence"]
    assert networks_finding(Measured(make_record(1, 4, 30, 3))) is None


def test_of_many_networks_those_that_agree_least_are_shown(make_record):
    many = make_record(MOST_NETWORKS + 5, 2, 80, 3)
    told = networks_finding(Measured(many))
    agreements = sorted(one.agreement for one in many.network_health())
    assert sorted(one["agreement"] for one in told["rows"]) == agreements[:MOST_NETWORKS]
    numbers = [one["network"] for one in told["rows"]]
    assert numbers == sorted(numbers)
    text = section(report_page(many), "members")
    assert f"Of 35 networks, the {MOST_NETWORKS} that agree least" in text
    assert "that agree least" not in section(report_page(make_record(3, 2, 80, 3)), "members")


def test_the_page_tells_what_was_forgotten_and_rescued(hard):
    found = hard.forgetting()
    gone = found.forgotten
    kept = int((hard.predict().labels == hard.truth)[gone].sum())
    text = section(report_page(hard), "forgetting")
    assert f" {len(gone)} samples" in text
    assert f"{100 * len(gone) / 1000:.1f} % of all 1,000" in text
    assert f"rescued {kept} samples" in text
    assert f"lost {len(gone) - kept} samples" in text
    assert f"right on {100 * kept / len(gone):.1f} % of them" in text


def test_where_nothing_was_forgotten_there_is_no_figure(make_record):
    text = report_page(make_record(3, 4, 20, 3, wrong=0))
    assert "Nothing: what the majority vote knew" in section(text, "forgetting")
    assert 'id="forgotten"' not in text


def test_one_epoch_cannot_forget(make_record):
    assert forgotten_finding(Measured(make_record(3, 1, 20, 3))) is None


def test_one_bad_network_is_told_as_one(hard):
    record = Record(CorruptReader(hard.reader, kind="constant", count=1))
    assert networks_finding(Measured(record))["sentence"].startswith("1 of 6 does not vote with")
