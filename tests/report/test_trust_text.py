"""Text, JSON and CSV of trust."""

import csv
import json

import numpy as np
import pytest
from hard_records import with_bad_networks

from accord._record import Record
from accord.analysis import Estimate, Overview, measure_trust
from accord.errors import ChoiceError, RecordExists
from accord.report._trust_text import trust_json, trust_text, write_samples
from accord.store import ArrayReader, make_sample_info

ESTIMATE = Estimate(value=0.8, low=0.7, high=0.9, confidence=0.95, error=0.05)


def written(record, found, path):
    write_samples(Overview.of(record.reader), found, path)
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_text_shows_bins_thresholds_networks_and_forgetting(hard):
    found = measure_trust(hard.reader, risk=0.1)
    text = trust_text(Overview.of(hard.reader), found)
    lines = text.splitlines()
    assert lines[0] == ("runs/mine: 5 networks, 12 epochs, 1000 samples; labels by max-agreement")
    bins = found.bins
    last = int(np.flatnonzero(bins.counts)[-1])
    row = [f"{bins.edges[last]:.2f}", str(bins.counts[last]), f"{100 * bins.accuracy[last]:.1f}"]
    assert row in [line.split()[:3] for line in lines]
    assert f"{100 * found.accuracy:.1f} % of the labels are right" in text
    assert f"by {100 * bins.error:.1f} points on average (ECE)" in text
    assert "margin from  answered  wrong" in lines
    answers = found.answers
    assert f"{answers.threshold:.9f}" == "0.266666667"
    share = f"{100 * answers.coverage:.1f}"
    assert f"for a risk of 10 %: {share} % are answered, from a margin of 0.266666" in lines
    assert f"{100 * answers.risk:.2f} % of the answers are wrong" in text
    assert f"at most {100 * answers.bound:.2f} %, with 95 % confidence" in text
    assert "networks: none is bad" in lines
    gone = found.forgetting
    assert (
        f"forgotten: {len(gone.forgotten)} samples, {100 * gone.share:.1f} %; {gone.knew.max()} of "
        f"them right after {gone.best_epoch + 1} of 12 epochs, {found.rescued} by max-agreement"
    ) in lines
    assert "--verify" not in text


def test_the_best_epoch_of_a_selection_is_shown_with_its_progress(hard):
    later = Record(hard.reader.select(epochs=slice(3, None)))
    found = measure_trust(later.reader)
    best = found.forgetting.best_epoch
    assert trust_json(Overview.of(later.reader), found)["forgotten"]["progress"] == best + 4
    when = f"right after {best + 4} of 12 epochs"
    assert when in trust_text(Overview.of(later.reader), found)


def test_a_printed_threshold_includes_the_sample_on_it(make_hard):
    """Two thirds, printed, must not be more than two thirds."""
    record = make_hard(3, 1)
    found = measure_trust(record.reader, threshold=2 / 3)
    assert "from a margin of 0.666666\n" in trust_text(Overview.of(record.reader), found)
    assert 0.666666 < 2 / 3


def test_the_fullest_bin_has_the_longest_bar_and_none_is_without():
    labels = np.zeros((2, 1, 201), int)
    labels[1, 0, 0] = 1  # one sample of 201 is divided
    record = Record(ArrayReader(labels, make_sample_info(samples=201, classes=2)))
    lines = trust_text(Overview.of(record.reader), measure_trust(record.reader)).splitlines()
    assert [line.count("#") for line in lines if "#" in line] == [1, 30]


def test_thresholds_answer_each_tenth_of_the_samples(hard):
    found = measure_trust(hard.reader)
    document = trust_json(Overview.of(hard.reader), found)["thresholds"]
    margin, wrong = hard.margin(), hard.predict().labels != hard.truth
    for one in document:
        answered = margin >= one["threshold"]
        assert one["coverage"] == pytest.approx(answered.mean())
        assert one["risk"] == pytest.approx(wrong[answered].mean())
    assert document[0]["coverage"] == 1
    coverages = [one["coverage"] for one in document]
    assert coverages == sorted(set(coverages), reverse=True)
    for tenth in range(1, 11):  # the smallest coverage that reaches it
        reached = min(
            (margin >= one).mean() for one in margin if (margin >= one).mean() >= tenth / 10 - 1e-9
        )
        assert pytest.approx(reached) in coverages


def test_json_holds_everything_with_truth(hard):
    found = measure_trust(hard.reader, risk=0.1)
    document = json.loads(json.dumps(trust_json(Overview.of(hard.reader), found), allow_nan=False))
    sizes = [document[key] for key in ("networks", "epochs", "samples", "classes")]
    assert sizes == [5, 12, 1000, 4]
    assert (document["record"], document["rule"], document["by"]) == (
        "runs/mine",
        "max-agreement",
        "margin",
    )
    scores = hard.predict().scores
    assert document["score"] == {"mean": scores.mean(), "median": np.median(scores)}
    assert sum(one["samples"] for one in document["bins"]) == 1000
    gaps = sum(one["samples"] * abs(one["score"] - one["right"]) for one in document["bins"])
    assert document["calibration_error"] == pytest.approx(gaps / 1000)
    assert document["largest_calibration_error"] == max(
        abs(one["score"] - one["right"]) for one in document["bins"]
    )
    assert document["area"] == found.curve.area
    assert document["accuracy"] == found.accuracy
    assert document["answers"] == {
        "target": 0.1,
        "threshold": found.answers.threshold,
        "coverage": found.answers.coverage,
        "risk": found.answers.risk,
        "bound": found.answers.bound,
        "confidence": 0.95,
        "reason": "",
    }
    gone = hard.forgetting()
    assert document["forgotten"] == {
        "samples": len(gone.forgotten),
        "share": gone.share,
        "judged_by": "truth",
        "best_epoch": gone.best_epoch,
        "progress": gone.best_epoch + 1,
        "knew": gone.knew.max(),
        "rescued": found.rescued,
    }
    assert (document["bad_networks"], document["notes"]) == ({}, [])
    assert "verified" not in document


def test_without_truth_the_text_names_the_next_commands(make_hard):
    blind = make_hard(truth=False)
    found = measure_trust(blind.reader)
    text = trust_text(Overview.of(blind.reader), found)
    assert "score from  samples\n" in text
    assert "answered" not in text
    assert "accord trust runs/mine --verify 300 --out queue.csv" in text
    assert "as judged by max-agreement; " in text
    assert not text.endswith("by max-agreement")
    document = json.loads(json.dumps(trust_json(Overview.of(blind.reader), found), allow_nan=False))
    assert not {"accuracy", "calibration_error", "area", "thresholds"} & set(document)
    assert set(document["bins"][0]) == {"from", "samples", "score"}
    assert document["forgotten"]["rescued"] is None
    small = make_hard(samples=100, truth=False)
    assert "--verify 50 " in trust_text(Overview.of(small.reader), measure_trust(small.reader))
    tiny = make_hard(samples=99, truth=False)
    assert "--verify" not in trust_text(Overview.of(tiny.reader), measure_trust(tiny.reader))


def test_verified_samples_take_the_place_of_the_advice(make_hard):
    blind = make_hard(truth=False)
    found = measure_trust(blind.reader)
    text = trust_text(Overview.of(blind.reader), found, ESTIMATE)
    assert "80.0 % of the labels are right: 70.0 to 90.0 %, with 95 % confidence" in text
    assert "--verify" not in text
    assert trust_json(Overview.of(blind.reader), found, ESTIMATE)["verified"] == {
        "value": 0.8,
        "low": 0.7,
        "high": 0.9,
        "confidence": 0.95,
    }


def test_a_threshold_without_truth_has_coverage_only(make_hard):
    blind = make_hard(truth=False)
    found = measure_trust(blind.reader, threshold=0.5)
    share = 100 * (blind.margin() >= 0.5).mean()
    text = trust_text(Overview.of(blind.reader), found)
    assert f"\n{share:.1f} % are answered, from a margin of 0.5\n" in text
    assert "wrong" not in text


def test_a_risk_that_cannot_be_kept_has_a_reason(hard):
    text = trust_text(Overview.of(hard.reader), measure_trust(hard.reader, risk=1e-6))
    assert "no threshold keeps the risk below 1e-06" in text


def test_bad_networks_are_named_with_the_cure(hard):
    spoilt = with_bad_networks(hard, "constant", "constant")
    found = measure_trust(spoilt.reader)
    assert (
        "networks: network 5 is constant, network 6 is constant. To leave out: --networks 0,1,2,3,4"
    ) in trust_text(Overview.of(spoilt.reader), found)
    document = trust_json(Overview.of(spoilt.reader), found)
    assert document["bad_networks"] == {"5": "constant", "6": "constant"}


def test_networks_that_cannot_be_compared_are_not_called_good(make_record):
    alone, strange = make_record(1, 4, 60, 3), make_record(3, 2, 60, 3, wrong=2)
    for record, words in ((alone, "only one"), (strange, "no two agree beyond")):
        found = measure_trust(record.reader)
        assert not found.comparable
        assert f"networks: {words}" in trust_text(Overview.of(record.reader), found)


def test_a_path_with_spaces_can_be_copied(make_hard):
    blind = Record(
        ArrayReader(make_hard().labels[:], make_sample_info(samples=1000, classes=4), name="a b")
    )
    assert "accord trust 'a b' --verified queue.csv" in trust_text(
        Overview.of(blind.reader), measure_trust(blind.reader)
    )


def test_no_forgotten_sample_is_one_line(make_record):
    perfect = make_record(3, 4, 20, 3, wrong=0)
    text = trust_text(Overview.of(perfect.reader), measure_trust(perfect.reader))
    assert text.endswith("forgotten: 0 samples, 0.0 %")


def test_samples_are_written_with_score_margin_and_answer(hard, tmp_path):
    found = measure_trust(hard.reader, risk=0.1)
    rows = written(hard, found, tmp_path / "new" / "samples.csv")
    assert list(rows[0]) == ["sample", "label", "score", "margin", "answers"]
    assert [int(row["sample"]) for row in rows] == list(range(1000))
    prediction = hard.predict()
    assert [int(row["label"]) for row in rows] == prediction.labels.tolist()
    assert [float(row["score"]) for row in rows] == prediction.scores.tolist()
    assert [float(row["margin"]) for row in rows] == hard.margin().tolist()
    assert [int(row["answers"]) for row in rows] == found.answered.astype(int).tolist()


def test_ids_and_class_names_are_written_and_an_abstention_has_none(tmp_path):
    sample_info = make_sample_info(
        samples=2, classes=2, truth=[1, 1], ids=["x", "y"], class_names=["cat", "dog"]
    )
    record = Record(ArrayReader(np.array([[[1, 0]], [[1, 1]]]), sample_info))
    rows = written(record, measure_trust(record.reader, "consensus"), tmp_path / "samples.csv")
    assert [list(row.values())[:4] for row in rows] == [
        ["0", "x", "1", "dog"],
        ["1", "y", "-1", ""],
    ]
    assert "margin" not in rows[0]


def test_without_truth_and_threshold_there_is_no_column_answers(make_hard, hard, tmp_path):
    blind = make_hard(truth=False)
    path = tmp_path / "samples.csv"
    assert "answers" not in written(blind, measure_trust(blind.reader), path)[0]
    assert "answers" in written(blind, measure_trust(blind.reader, threshold=0.5), path)[0]
    kept = written(hard, measure_trust(hard.reader, risk=1e-6), path)
    assert {row["answers"] for row in kept} == {"0"}


def test_samples_are_csv(hard, tmp_path):
    with pytest.raises(ChoiceError, match=r"samples are written as \.csv; got '\.txt'"):
        write_samples(
            Overview.of(hard.reader), measure_trust(hard.reader), tmp_path / "samples.txt"
        )


def test_samples_are_written_over_their_like_alone(make_hard, hard, tmp_path):
    path, blind = tmp_path / "samples.csv", make_hard(truth=False, class_names=["a", "b", "c", "d"])
    for record in (hard, blind, hard):
        rows = written(record, measure_trust(record.reader), path)
        assert ("class" in rows[0]) == (record is blind)
    for text in ("sample;decided\n3;1\n", "sample,Decided\n3,1\n", "sample,label\n3,1\n"):
        path.write_text(text)
        with pytest.raises(RecordExists, match=r"samples\.csv: .* not a file of samples"):
            write_samples(Overview.of(hard.reader), measure_trust(hard.reader), path)
        assert path.read_text() == text
