"""What the report says of overfit and of labels is what watch and audit found."""

import re
from dataclasses import replace

import numpy as np
import pytest
from memorised import NAMES, memorised_rows
from overfitting import draw_run, right_chances

from accord._record import Record
from accord.analysis._audit._audit import audit
from accord.analysis._audit._notes import audit_notes
from accord.report._cached_results import Measured
from accord.report._figures import draw_figure
from accord.report._sentences import CAPTIONS, label_finding, overfit_finding
from accord.report.html import report_page
from accord.store import ArrayReader, make_sample_info


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


def test_an_alarm_is_told_with_its_epoch(falling):
    found = falling.watch()
    assert found.alarm
    told = overfit_finding(Measured(falling))
    assert (told["alarm"], told["epoch"]) == (True, found.epoch)
    assert told["when"] == f"after {found.epoch + 1} epochs of training"
    text = section(report_page(falling), "overfitting")
    assert "Is it overfitting?" in text
    assert " Yes " in text
    assert f"by {100 * found.fall:.1f} points after its peak" in text
    assert f"How sure that is: {100 * found.sure:.2f} %" in text
    assert f"The epoch before overfit is epoch {found.epoch} ," in text
    assert "trained on these very samples" not in text


def test_no_alarm_is_no_proof(settled):
    found = settled.watch()
    text = section(report_page(settled), "overfitting")
    assert not found.alarm
    assert " No alarm " in text
    assert found.reason in text
    assert "That is no proof" in text
    assert f"looks best is epoch {found.best_epoch} ," in text


def test_the_epoch_is_marked_where_agreement_is_drawn(falling, settled):
    for record, words in ((falling, "before overfit"), (settled, "looks best")):
        measured = Measured(record)
        drawing = draw_figure("agreement", measured)
        marked = record.progress[measured.watch.best_epoch]
        assert f"{words}: {marked:g}" in drawing
        assert ("opacity: 0.08" in drawing) == measured.watch.alarm  # what follows is tinted
    assert "The diamond is the epoch before overfit" in CAPTIONS["agreement"](Measured(falling))
    assert "The diamond is the epoch that looks best" in CAPTIONS["agreement"](Measured(settled))


def test_samples_that_were_held_out_are_not_called_trained_on(training):
    assert overfit_finding(Measured(training))["trained_on"]
    rows = training.reader
    labels = rows.read_labels(range(rows.networks), range(rows.epochs), slice(None))
    held_out = replace(rows.sample_info, split="validation")
    assert not overfit_finding(Measured(Record(ArrayReader(labels, held_out))))["trained_on"]


def test_overfit_needs_networks_and_epochs_to_compare(falling):
    assert overfit_finding(Measured(falling.select(networks=[0]))) is None
    assert overfit_finding(Measured(falling.select(epochs=[3]))) is None
    assert section(report_page(falling.select(networks=[0])), "overfitting") is None


def test_suspects_are_the_top_of_the_ranking(training):
    found = audit(training.reader)
    told = label_finding(Measured(training))
    assert told["flagged"] == str(found.flagged.sum())
    assert told["rate"] == f"{100 * found.noise_rate:.1f} %"
    top = found.ranking[:20]
    assert [int(one["sample"]) for one in told["suspects"]] == top.tolist()
    for one, sample in zip(told["suspects"], top, strict=True):
        assert one["given"] == NAMES[found.given[sample]]
        assert one["proposed"] == NAMES[found.proposed[sample]]
        assert one["suspicion"] == f"{found.suspicion[sample]:.3f}"


def test_suspects_stand_on_the_page(training):
    page = report_page(training)
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
    assert "trained on these very samples" in section(page, "overfitting")
    assert len(page.encode()) < 400_000


def test_ids_and_plain_numbers_are_shown_where_they_are_all_there_is(training):
    ids = [f"<image> {sample}" for sample in range(600)]
    record = without(training, ids=ids, class_names=None, truth=None)
    told = label_finding(Measured(record))
    first = audit(record.reader).ranking[0]
    assert told["suspects"][0]["sample"] == f"<image> {first}"
    assert told["suspects"][0]["given"] == str(record.given[first])
    assert told["score"] is None
    page = report_page(record)
    assert f"&lt;image&gt; {first}" in page
    assert "<image>" not in page
    assert ">id</th>" in page


def test_fewer_suspects_than_twenty_are_all_listed():
    record = Record(memorised_rows(samples=40))
    found = audit(record.reader)
    told = label_finding(Measured(record))
    assert 0 < found.flagged.sum() < 20
    assert len(told["suspects"]) == found.flagged.sum()


def test_without_a_suspect_only_the_ranking_is_scored():
    record = Record(memorised_rows(rate=0.02))
    found = audit(record.reader)
    assert not found.flagged.any()
    told = label_finding(Measured(record))["score"]
    assert told.endswith(f"AUROC {found.score.auroc:.3f}.")


def test_labels_that_cannot_be_audited_are_not_passed_over(training):
    late = training.select(epochs=[11])  # all labels are known by heart
    told = label_finding(Measured(late))
    assert "cannot tell wrong labels" in told["refused"]
    text = section(report_page(late), "labels")
    assert "The given labels could not be audited. memorised: at every epoch" in text
    assert "suspicion" not in text


def test_a_class_that_nobody_predicts_is_noted_by_its_name(training):
    rows = training.reader
    labels = rows.read_labels(range(4), range(12), slice(None))
    mute = Record(ArrayReader(np.where(labels == 4, 0, labels), rows.sample_info))
    (note,) = audit_notes(audit(mute.reader), rows.sample_info)
    assert f"N{note[1:]}." in section(report_page(mute), "labels")


def test_no_flag_leaves_no_table():
    record = Record(memorised_rows(rate=0.0))
    found = audit(record.reader)
    text = section(report_page(record), "labels")
    assert not found.flagged.any()
    assert "0 of 600 given labels are probably wrong: 0.0 %" in text
    assert "suspicion" not in text


def test_without_given_labels_there_is_no_section_about_them(falling, training):
    assert label_finding(Measured(falling)) is None
    assert section(report_page(falling), "labels") is None
    assert label_finding(Measured(training.select(networks=[1]))) is None


def test_too_many_classes_to_audit_leave_the_rest_of_the_report(training, monkeypatch):
    monkeypatch.setattr("accord.analysis._audit._posterior.LARGEST", 1)
    text = report_page(training)
    assert "could not be audited. an audit of" in section(text, "labels")
    assert section(text, "members") is not None


def test_the_noise_rate_is_told_beside_the_labels_flagged_where_many_are_undecided():
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 2, 400)
    given = np.where(generator.random(400) < 0.2, 1 - truth, truth)
    votes = np.where(generator.random((3, 8, 400)) < 0.8, truth, 1 - truth)
    sample_info = make_sample_info(samples=400, classes=2, given=given, split="train")
    record = Record(ArrayReader(votes, sample_info, name="two"))
    found = record.audit()
    assert found.noise_rate > found.flagged.mean() + 0.05
    rate = f"By all suspicions, the noise rate is {100 * found.noise_rate:.1f} %"
    assert rate in section(report_page(record), "labels")


def test_one_rate_is_told_where_votes_decide(training):
    assert "By all suspicions" not in section(report_page(training), "labels")
