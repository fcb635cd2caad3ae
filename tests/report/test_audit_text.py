"""Text and JSON of an audit."""

import dataclasses
import json

import numpy as np
import pytest
from memorised import IDS, NAMES, memorised_rows

from accord.analysis import Decisions, Overview, audit, expected_gain, measure_gain
from accord.report._audit_text import audit_json, audit_text, gain_text


@pytest.fixture(scope="module")
def record():
    return memorised_rows(ids=IDS, class_names=NAMES)


@pytest.fixture(scope="module")
def found(record):
    return audit(record)


def test_a_gain_is_expected_before_and_actual_after_the_decisions(found):
    planned = expected_gain(found, found.ranking[:1])
    assert gain_text(planned).startswith(f"1 label to review; {100 * planned.expected:.1f} in 100")
    assert planned.expected > 0.99
    assert "in random order" in gain_text(planned)
    decisions = Decisions(found.ranking[:2], found.proposed[found.ranking[:2]])
    document = gain_text(measure_gain(found, decisions, found.proposed))
    assert "2 labels reviewed, 2 changed (2 as proposed): 100.0 in 100 were wrong" in document
    assert document.endswith("2 decisions are true")


def test_json_holds_the_promised_keys(found, record):
    document = json.loads(json.dumps(audit_json(Overview.of(record), found), allow_nan=False))
    assert document["samples"] == 600
    assert document["noise_rate"] == found.noise_rate
    assert document["auroc"] == found.score.auroc
    assert document["ranking"] == found.ranking.tolist()
    assert document["flagged"] == found.flagged.sum()
    assert document["confusion"] == found.confusion.tolist()
    assert document["weights"] == found.weights.tolist()
    assert (document["notes"], document["unpredicted"], document["never_predicted"]) == ([], [], [])
    assert "review" not in document
    decisions = Decisions(found.ranking[:2], found.proposed[found.ranking[:2]])
    document = audit_json(Overview.of(record), found, measure_gain(found, decisions))
    assert document["review"]["actual"] == 1.0


def test_json_of_many_samples_and_classes_is_cut():
    record = memorised_rows(samples=3000, classes=100, truth=None)
    record.sample_info = dataclasses.replace(
        record.sample_info, classes=101
    )  # one that is never given
    document = json.loads(
        json.dumps(audit_json(Overview.of(record), audit(record)), allow_nan=False)
    )
    assert len(document["ranking"]) == 1000
    assert "confusion" not in document
    assert "auroc" not in document
    assert document["noise_rates"][100] is None


def test_the_text_names_classes_and_samples(found, record):
    lines = audit_text(Overview.of(record), found).splitlines()
    assert lines[0] == "memorised: 4 networks, 12 epochs, 600 samples, 5 classes"
    flagged = found.flagged.sum()
    assert lines[2] == f"{flagged} labels are probably wrong: {100 * flagged / 600:.1f} %"
    assert lines[3].startswith(f"against the true labels: AUROC {found.score.auroc:.4f}")
    assert lines[5] == "given  proposed  samples"
    moves = found.confusion - np.diag(np.diag(found.confusion))
    given, proposed = np.unravel_index(moves.argmax(), (5, 5))
    assert lines[6].split() == [NAMES[given], NAMES[proposed], str(moves.max())]
    at = lines.index("id         given  proposed  suspicion  log odds")
    worst = found.ranking[0]
    labels = [NAMES[found.given[worst]], NAMES[found.proposed[worst]]]
    numbers = [f"{found.suspicion[worst]:.3f}", f"{found.log_odds[worst]:.1f}"]
    assert lines[at + 1].split() == [f"image-{worst}", *labels, *numbers]
    assert len(lines) == at + 11


def test_line_breaks_in_names_and_ids_break_no_row(found):
    names = tuple(f"{name}\r\n({name})" for name in NAMES)
    broken = memorised_rows(ids=np.array([f"a\n{n}" for n in range(600)]), class_names=names)
    lines = audit_text(Overview.of(broken), found).splitlines()
    assert len(lines) == len(
        audit_text(Overview.of(memorised_rows(class_names=NAMES)), found).splitlines()
    )
    assert any(line.startswith(f"a {found.ranking[0]}  ") for line in lines)


def test_the_text_of_a_clean_record_is_short():
    record = memorised_rows(rate=0.0, truth=None)
    lines = audit_text(Overview.of(record), audit(record)).splitlines()
    assert lines[2:] == ["0 labels are probably wrong: 0.0 %"]


def test_one_label_is_singular(record, found):
    once = record.select(epochs=[4])
    assert audit_text(Overview.of(once), audit(once)).startswith(
        "memorised: 4 networks, 1 epoch, 600 samples,"
    )
    one = dataclasses.replace(found, flagged=np.arange(600) == 3)
    assert (
        audit_text(Overview.of(record), one).splitlines()[2] == "1 label is probably wrong: 0.2 %"
    )
    decisions = Decisions(found.ranking[:1], found.proposed[found.ranking[:1]])
    gain = measure_gain(found, decisions, found.proposed)
    assert gain_text(gain).endswith("1 decision is true")


def test_a_precision_of_no_label_is_left_out(record, found):
    score = dataclasses.replace(found.score, precision=float("nan"), recall=0.0)
    none = dataclasses.replace(found, flagged=np.zeros(600, bool), score=score)
    line = audit_text(Overview.of(record), none).splitlines()[3]
    assert line == f"against the true labels: AUROC {score.auroc:.4f}; no label is flagged"


def test_the_share_in_text_is_of_the_flagged_labels(record, found):
    doubtful = dataclasses.replace(found, log_odds=np.full(600, np.log(0.4 / 0.6)))
    assert doubtful.noise_rate == pytest.approx(0.4)
    lines = audit_text(Overview.of(record), doubtful).splitlines()
    assert lines[2].endswith(f": {100 * found.flagged.mean():.1f} %")
    assert lines[3] == "noise rate by the mean posterior: 40.0 %"
    assert "mean posterior" not in audit_text(Overview.of(record), found)
