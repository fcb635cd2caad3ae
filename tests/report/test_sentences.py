"""Captions and findings of the report."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hard_records import with_bad_networks
from memorised import NAMES, memorised_rows
from overfitting import draw_run, right_chances

from accord._record import Record
from accord.analysis import summarize
from accord.analysis._audit._audit import audit
from accord.analysis._audit._notes import audit_notes
from accord.report._drawing import svg_of
from accord.report._figures import record_figure
from accord.report._sentences import (
    CAPTIONS,
    KINDS,
    MOST_NETWORKS,
    coverage_at,
    forgotten_finding,
    label_finding,
    networks_finding,
    overfit_finding,
    trust_finding,
)
from accord.report.html import render
from accord.store import ArrayReader, make_sample_info


def page_of(record):
    return render(summarize(record.reader))


SHAPES = [(3, 8, 120, 4), (1, 8, 60, 2), (5, 1, 60, 3), (2, 3, 1, 3)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", sorted(set(CAPTIONS) - {"agreement"}))
def test_a_caption_is_whole_sentences_for_any_record(make_record, name, shape):
    for wrong in (0, 0.4):
        caption = CAPTIONS[name](summarize(make_record(*shape, wrong=wrong).reader))
        assert re.fullmatch(r"[A-Z].*\.", caption)
        assert not re.search(r"nan|None|after 1 epochs|  ", caption)


def test_accuracy_caption_names_the_best_and_the_last_epoch(record):
    curve = record.curve("majority")
    best = int(curve.accuracy.argmax())
    caption = CAPTIONS["accuracy"](summarize(record.reader)).replace("\N{NO-BREAK SPACE}", " ")
    assert f"best, {100 * curve.accuracy[best]:.1f} %, after {curve.progress[best]:g} " in caption
    assert f"ends at {100 * curve.accuracy[-1]:.1f} %;" in caption


def test_epochs_caption_names_the_fewest_epochs_that_suffice(record):
    sweep = record.by_epochs()
    enough = [
        k
        for k, share in zip(sweep.sizes, sweep.mean, strict=True)
        if share >= sweep.mean[-1] - 0.01
    ]
    assert f"{enough[0]} of 8 are within one point" in CAPTIONS["epochs"](summarize(record.reader))


def test_final_margin_caption_counts_what_trails(record):
    right = record.predict("majority").labels == record.truth
    trails = record.final_margin() < 0
    caption = CAPTIONS["final-margin"](summarize(record.reader)).replace("\N{NO-BREAK SPACE}", " ")
    wrong_share, right_share = 100 * trails[~right].mean(), 100 * trails[right].mean()
    assert f"{wrong_share:.1f} % of the wrong and {right_share:.1f} % of the right" in caption


def test_without_errors_there_is_no_error_consensus(make_record):
    perfect = summarize(make_record(3, 4, 20, 3, wrong=0).reader)
    assert "no network predicts a wrong class" in CAPTIONS["error-consensus"](perfect)


def test_agreement_caption_names_its_peak(record):
    measured = summarize(record.reader)
    caption = CAPTIONS["agreement"](measured).replace("\N{NO-BREAK SPACE}", " ")
    assert f"highest, {100 * measured.watch.agreement.max():.1f} %" in caption


@pytest.fixture(scope="module")
def falling():
    """A record whose networks come to agree and part again."""
    return Record(draw_run(right_chances(end=0.5)))


@pytest.fixture(scope="module")
def settled():
    """A record whose networks come to agree and stay so."""
    return Record(draw_run(right_chances()))


@pytest.fixture(scope="module")
def training():
    """A record of samples with wrong labels that are learnt by heart."""
    return Record(memorised_rows(class_names=NAMES))


def section(text, name):
    """The text of one section, without its tags; None if it is not there."""
    found = re.search(
        rf'<section id="{name}">\n<h2>.*?(?=<section>\n<h2>|<section id|</main>)', text, re.S
    )
    return None if found is None else re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", found[0]))


def without(record, **sample_info):
    """The same votes with other facts."""
    rows = record.reader
    labels = rows.read_labels(range(rows.networks), range(rows.epochs), slice(None))
    known = {
        "given": rows.sample_info.given,
        "truth": rows.sample_info.truth,
        "class_names": NAMES,
    } | sample_info
    made = make_sample_info(samples=rows.samples, classes=rows.classes, split="train", **known)
    return Record(ArrayReader(labels, made, name="mine"))


def test_an_alarm_names_the_last_good_epoch(falling):
    found = falling.watch()
    assert found.alarm
    document = overfit_finding(summarize(falling.reader))
    assert document["alarm"]
    assert document["when"] == f"after {found.epoch + 1} of {falling.epochs} epochs"
    text = section(page_of(falling), "overfitting")
    assert " Detected " in text
    assert f"by {100 * found.fall:.1f} points after its peak" in text
    assert f"(confidence {100 * found.sure:.2f} %)" in text
    assert f"The last good epoch is the one {document['when']} :" in text
    assert "trained on these samples" not in text


def test_no_alarm_is_no_proof(settled):
    found = settled.watch()
    text = section(page_of(settled), "overfitting")
    assert not found.alarm
    assert " Not detected " in text
    assert found.reason[1:] in text
    assert "This is no proof" in text
    assert (
        f"by majority vote is the one after {found.best_epoch + 1} of {settled.epochs} epochs"
        in text
    )


def test_the_epoch_is_marked_where_agreement_is_drawn(falling, settled):
    for record, words in ((falling, "last good epoch"), (settled, "best epoch")):
        measured = summarize(record.reader)
        drawing = svg_of(record_figure("agreement", measured))
        marked = record.progress[measured.watch.best_epoch]
        assert f"{words}: after {marked:g} of {record.epochs} epochs" in drawing
        assert ("opacity: 0.08" in drawing) == measured.watch.alarm  # later epochs are shaded
    assert "The diamond is the last good epoch" in CAPTIONS["agreement"](summarize(falling.reader))
    assert "The diamond is the best epoch by majority vote" in CAPTIONS["agreement"](
        summarize(settled.reader)
    )


def test_samples_that_were_held_out_are_not_called_trained_on(training):
    assert not overfit_finding(summarize(training.reader))["verdict"]
    rows = training.reader
    labels = rows.read_labels(range(rows.networks), range(rows.epochs), slice(None))
    held_out = replace(rows.sample_info, split="validation")
    assert overfit_finding(summarize(Record(ArrayReader(labels, held_out)).reader))["verdict"]


def test_overfit_needs_networks_and_epochs_to_compare(falling):
    assert overfit_finding(summarize(falling.select(networks=[0]).reader)) is None
    assert overfit_finding(summarize(falling.select(epochs=[3]).reader)) is None
    assert section(page_of(falling.select(networks=[0])), "overfitting") is None


def test_suspects_are_the_top_of_the_ranking(training):
    found = audit(training.reader)
    document = label_finding(summarize(training.reader))
    assert document["flagged"] == str(found.flagged.sum())
    assert document["rate"] == f"{100 * found.noise_rate:.1f} %"
    top = found.ranking[:20]
    assert [int(one["sample"]) for one in document["suspects"]] == top.tolist()
    for one, sample in zip(document["suspects"], top, strict=True):
        assert one["given"] == NAMES[found.given[sample]]
        assert one["proposed"] == NAMES[found.proposed[sample]]
        assert one["suspicion"] == f"{found.suspicion[sample]:.3f}"


def test_suspects_stand_on_the_page(training):
    page = page_of(training)
    found = audit(training.reader)
    text = section(page, "labels")
    flagged = found.flagged.sum()
    assert (
        f"{flagged} of 600 given labels are probably wrong: {100 * found.noise_rate:.1f} %" in text
    )
    assert f"AUROC {found.score.auroc:.3f}; {100 * found.score.precision:.1f} % of the" in text
    assert f"{100 * found.score.recall:.1f} % of the wrong labels are among them" in text
    table = re.search(r'<table class="sortable suspects">.*?</table>', page, re.DOTALL)[0]
    assert table.count("<tr>") == 21
    assert ">sample</th>" in table
    assert "trained on these samples" in section(page, "overfitting")
    assert len(page.encode()) < 400_000


def test_ids_and_plain_numbers_are_shown_where_they_are_all_there_is(training):
    ids = [f"<image> {sample}" for sample in range(600)]
    record = without(training, ids=ids, class_names=None, truth=None)
    document = label_finding(summarize(record.reader))
    first = audit(record.reader).ranking[0]
    assert document["suspects"][0]["sample"] == f"<image> {first}"
    assert document["suspects"][0]["given"] == str(record.given[first])
    assert document["score"] is None
    page = page_of(record)
    assert f"&lt;image&gt; {first}" in page
    assert "<image>" not in page
    assert ">id</th>" in page


def test_fewer_suspects_than_twenty_are_all_listed():
    record = Record(memorised_rows(samples=40))
    found = audit(record.reader)
    document = label_finding(summarize(record.reader))
    assert 0 < found.flagged.sum() < 20
    assert len(document["suspects"]) == found.flagged.sum()


def test_without_a_suspect_only_the_ranking_is_scored():
    record = Record(memorised_rows(rate=0.02))
    found = audit(record.reader)
    assert not found.flagged.any()
    document = label_finding(summarize(record.reader))["score"]
    assert document.endswith(f"AUROC {found.score.auroc:.3f}.")


def test_labels_that_cannot_be_audited_are_not_passed_over(training):
    late = training.select(epochs=[11])  # all labels are known by heart
    document = label_finding(summarize(late.reader))
    assert "wrong labels cannot be found" in document["refused"]
    text = section(page_of(late), "labels")
    assert "The given labels could not be audited. memorised: at every epoch" in text
    assert "suspicion" not in text


def test_a_class_that_nobody_predicts_is_noted_by_its_name(training):
    rows = training.reader
    labels = rows.read_labels(range(4), range(12), slice(None))
    mute = Record(ArrayReader(np.where(labels == 4, 0, labels), rows.sample_info))
    (note,) = audit_notes(audit(mute.reader), rows.sample_info)
    assert f"N{note[1:]}." in section(page_of(mute), "labels")


def test_no_flag_leaves_no_table():
    record = Record(memorised_rows(rate=0.0))
    found = audit(record.reader)
    text = section(page_of(record), "labels")
    assert not found.flagged.any()
    assert "0 of 600 given labels are probably wrong: 0.0 %" in text
    assert "suspicion" not in text


def test_without_given_labels_there_is_no_section_about_them(falling, training):
    assert label_finding(summarize(falling.reader)) is None
    assert section(page_of(falling), "labels") is None
    assert label_finding(summarize(training.select(networks=[1]).reader)) is None


def test_too_many_classes_to_audit_leave_the_rest_of_the_report(training, monkeypatch):
    monkeypatch.setattr("accord.analysis._audit._posterior.LARGEST", 1)
    text = page_of(training)
    assert "could not be audited. an audit of" in section(text, "labels")
    assert section(text, "network-health") is not None


def test_the_mean_suspicion_is_shown_if_many_labels_are_undecided():
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 2, 400)
    given = np.where(generator.random(400) < 0.2, 1 - truth, truth)
    votes = np.where(generator.random((3, 8, 400)) < 0.8, truth, 1 - truth)
    sample_info = make_sample_info(samples=400, classes=2, given=given, split="train")
    record = Record(ArrayReader(votes, sample_info, name="two"))
    found = record.audit()
    assert found.noise_rate > found.flagged.mean() + 0.05
    rate = f"By the mean posterior, the noise rate is {100 * found.noise_rate:.1f} %"
    assert rate in section(page_of(record), "labels")


def test_the_mean_suspicion_is_left_out_if_votes_decide(training):
    assert "By the mean posterior" not in section(page_of(training), "labels")


@pytest.fixture(scope="module")
def spoilt(hard):
    """Five networks, a sixth that guesses and a seventh that predicts one class."""
    return with_bad_networks(hard, "random", "constant")


def with_facts(record, **sample_info):
    made = make_sample_info(samples=record.samples, classes=record.classes, **sample_info)
    return Record(ArrayReader(record.labels[:], made))


def test_the_page_shows_the_coverage_at_small_risks(hard):
    curve = hard.risk_coverage()
    text = section(page_of(hard), "trust")
    for risk in (0.05, 0.01):
        share = 100 * coverage_at(curve, risk)
        assert f"with {100 * risk:g} % wrong {share:.1f} % of the samples" in text
    assert "trained on these samples" not in text


def test_full_and_no_coverage_are_words(make_record):
    perfect = trust_finding(summarize(make_record(3, 4, 20, 3, wrong=0).reader))
    assert [one["answered"] for one in perfect["risks"]] == ["all", "all"]
    sample_info = make_sample_info(samples=4, classes=2, truth=[1, 1, 1, 1])
    hopeless = Record(ArrayReader(np.zeros((2, 3, 4), int), sample_info))
    assert [one["answered"] for one in trust_finding(summarize(hopeless.reader))["risks"]] == [
        "none"
    ] * 2


def test_samples_that_were_trained_on_are_pointed_out(hard):
    trained = with_facts(hard, truth=hard.truth, split="train")
    assert trust_finding(summarize(trained.reader))["trained_on"]
    held_out = with_facts(hard, truth=hard.truth, given=hard.truth, split="validation")
    assert not trust_finding(summarize(held_out.reader))["trained_on"]
    assert "trained on these samples" in section(page_of(trained), "trust")


def test_without_truth_there_is_neither_trust_nor_forgetting_but_a_way_to_it(hard):
    blind = with_facts(hard)
    text = page_of(blind)
    assert section(text, "trust") is None
    assert section(text, "forgetting") is None
    assert "--verify 300" in text
    document = section(text, "network-health")
    assert "All 5 vote with the others." in document
    assert "accuracy" not in document


def test_networks_are_listed_with_agreement_and_accuracy(hard):
    document = networks_finding(summarize(hard.reader))
    last = hard.labels[:][:, -1]
    for row, member in zip(document["rows"], hard.network_health(), strict=True):
        assert (row["network"], row["kind"]) == (member.network, "good")
        assert row["agreement"] == row["at"] == member.agreement
        assert row["accuracy"] == pytest.approx((last[member.network] == hard.truth).mean())
    assert document["left_out"] is None
    text = section(page_of(hard), "network-health")
    row = document["rows"][2]
    assert f" 2 {row['agreement']:.2f} {100 * row['accuracy']:.2f} %" in text


def test_bad_networks_come_first_with_what_leaving_them_out_changes(spoilt, hard):
    document = networks_finding(summarize(spoilt.reader))
    assert [(one["network"], one["kind"]) for one in document["rows"]][:3] == [
        (5, "random"),
        (6, "constant"),
        (0, "good"),
    ]
    moved = (spoilt.predict().labels != hard.predict().labels).sum()
    text = section(page_of(spoilt), "network-health")
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
    corrupt = with_bad_networks(with_facts(hard), "random")
    text = section(page_of(corrupt), "network-health")
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
    rows = networks_finding(summarize(opposed.reader))["rows"]
    assert [(one["agreement"], one["at"]) for one in rows] == [(-1, 0), (-1, 0)]


def test_networks_that_cannot_be_compared_are_noted(make_record, make_hard):
    apart = make_record(3, 2, 50, 4, wrong=1)
    labels = np.stack([np.full((2, 50), n) for n in range(3)])
    sample_info = make_sample_info(samples=50, classes=4, truth=apart.truth)
    document = networks_finding(summarize(Record(ArrayReader(labels, sample_info)).reader))
    assert document["sentence"].startswith("No two networks agree beyond chance")
    two = networks_finding(summarize(make_hard(2, 4).reader))
    assert "the bad one could not be identified" in two["sentence"]
    assert networks_finding(summarize(make_record(1, 4, 30, 3).reader)) is None


def test_of_many_networks_those_that_agree_least_are_shown(make_record):
    many = make_record(MOST_NETWORKS + 5, 2, 80, 3)
    document = networks_finding(summarize(many.reader))
    agreements = sorted(one.agreement for one in many.network_health())
    assert sorted(one["agreement"] for one in document["rows"]) == agreements[:MOST_NETWORKS]
    numbers = [one["network"] for one in document["rows"]]
    assert numbers == sorted(numbers)
    text = section(page_of(many), "network-health")
    assert f"Of 35 networks, the {MOST_NETWORKS} that agree least" in text
    assert "that agree least" not in section(page_of(make_record(3, 2, 80, 3)), "network-health")


def test_the_page_shows_forgotten_and_rescued_samples(hard):
    found = hard.forgetting()
    gone = found.forgotten
    kept = int((hard.predict().labels == hard.truth)[gone].sum())
    text = section(page_of(hard), "forgetting")
    assert f" {len(gone)} samples" in text
    assert f"{100 * len(gone) / 1000:.1f} % of all 1,000" in text
    assert f"rescued {kept} samples" in text
    assert f"lost {len(gone) - kept} samples" in text
    assert f"right on {100 * kept / len(gone):.1f} % of them" in text


def test_where_nothing_was_forgotten_there_is_no_figure(make_record):
    text = page_of(make_record(3, 4, 20, 3, wrong=0))
    assert "None: wherever the majority vote is right" in section(text, "forgetting")
    assert 'id="forgotten"' not in text


def test_one_epoch_cannot_forget(make_record):
    assert forgotten_finding(summarize(make_record(3, 1, 20, 3).reader)) is None


def test_one_bad_network_is_singular(hard):
    record = with_bad_networks(hard, "constant")
    assert networks_finding(summarize(record.reader))["sentence"].startswith(
        "1 of 6 does not vote with"
    )
