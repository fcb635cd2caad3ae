"""Verified samples: drawn, written, read, estimated."""

import csv
import re

import numpy as np
import pytest

from accord.analysis._trust._confidence_intervals import share_interval
from accord.analysis._trust._verified_samples import (
    Sampling,
    choose_to_verify,
    read_verification,
    verified_accuracy,
    write_verification,
)
from accord.errors import ChoiceError, PredictionError, RecordExists, RecordMismatch, SourceError
from accord.store import make_sample_info


def draw(samples=3000, seed=0):
    generator = np.random.default_rng(seed)
    scores = generator.beta(4, 1, samples)
    return scores, generator.random(samples) < scores


def test_the_estimate_is_unbiased_with_nominal_coverage():
    scores, right = draw()
    covered, values = 0, []
    for seed in range(400):
        sampling = choose_to_verify(scores, 200, seed=seed)
        found = verified_accuracy(right[sampling.samples], sampling)
        covered += found.low <= right.mean() <= found.high
        values.append(found.value)
    assert np.mean(values) == pytest.approx(right.mean(), abs=0.004)
    assert 0.90 <= covered / 400 <= 0.99


def test_strata_narrow_the_interval():
    scores, right = draw()
    stratified = [
        verified_accuracy(right[one.samples], one).value
        for one in (choose_to_verify(scores, 100, seed=seed) for seed in range(300))
    ]
    generator = np.random.default_rng(0)
    plain = [right[generator.choice(3000, 100, replace=False)].mean() for _ in range(300)]
    assert np.std(stratified) < 0.95 * np.std(plain)


def test_useless_scores_do_no_harm():
    _, right = draw()
    scores = np.random.default_rng(1).random(3000)
    values = [
        verified_accuracy(right[one.samples], one).value
        for one in (choose_to_verify(scores, 200, seed=seed) for seed in range(300))
    ]
    assert np.mean(values) == pytest.approx(right.mean(), abs=0.006)


def test_samples_are_drawn_once_from_strata_of_equal_size():
    scores, _ = draw(1000)
    found = choose_to_verify(scores, 100, strata=4)
    assert len(set(found.samples.tolist())) == 100
    assert found.samples.tolist() == sorted(found.samples.tolist())
    assert found.sizes.tolist() == [250] * 4
    order = np.argsort(np.argsort(scores))
    np.testing.assert_array_equal(order[found.samples] // 250, found.strata)
    counts = np.bincount(found.strata)
    assert counts.min() >= 2
    assert counts[0] > counts[-1]  # the least sure stratum mixes right and wrong most


def test_verifying_everything_leaves_no_doubt():
    scores, right = draw(50)
    found = choose_to_verify(scores, 50)
    estimate = verified_accuracy(right[found.samples], found)
    assert estimate.value == pytest.approx(right.mean())
    assert estimate.error == pytest.approx(0, abs=1e-12)


def test_a_difference_between_two_rules_can_be_estimated():
    scores, right = draw()
    other = np.random.default_rng(2).random(3000) < 0.5
    found = choose_to_verify(scores, 400)
    gap = right.astype(int) - other
    estimate = verified_accuracy(gap[found.samples], found)
    assert estimate.low < gap.mean() < estimate.high


@pytest.mark.parametrize("samples", [100, 2000])
@pytest.mark.parametrize("budget", [10, 20, 60])
@pytest.mark.parametrize("share", [0.7, 0.95, 0.99])
def test_the_interval_holds_for_few_samples_too(samples, budget, share):
    generator = np.random.default_rng(3)
    scores = generator.random(samples)
    right = generator.random(samples) < share
    covered = 0
    for seed in range(200):
        sampling = choose_to_verify(scores, budget, seed=seed)
        found = verified_accuracy(right[sampling.samples], sampling)
        covered += found.low <= right.mean() <= found.high
        assert found.low <= found.value <= found.high
    assert covered >= 0.93 * 200


def test_all_right_is_no_proof_that_all_are():
    sampling = choose_to_verify(np.linspace(0, 1, 100), 20)
    found = verified_accuracy(np.ones(20), sampling)
    assert (found.value, found.high) == (1, 1)
    assert 0.6 < found.low < 0.9  # a plain draw of 20 would give 0.832
    assert found.error > 0


def test_strata_that_are_drawn_alike_are_one_draw():
    sampling = Sampling(np.arange(20), np.repeat(np.arange(5), 4), np.full(5, 10**9))
    found = verified_accuracy(np.ones(20), sampling)
    assert (found.low, found.high) == pytest.approx(share_interval(20, 20))


@pytest.mark.parametrize("budget", [20, 60])
def test_the_interval_of_a_difference_holds_for_few_samples(budget):
    generator = np.random.default_rng(4)
    scores = generator.random(2000)
    gap = generator.choice([-1, 0, 1], 2000, p=[0.02, 0.88, 0.1])
    covered = 0
    for seed in range(200):
        sampling = choose_to_verify(scores, budget, seed=seed)
        found = verified_accuracy(gap[sampling.samples], sampling, difference=True)
        covered += found.low <= gap.mean() <= found.high
        assert found.low < found.high
    assert covered >= 0.93 * 200


def test_a_difference_that_was_never_negative_may_still_be():
    sampling = choose_to_verify(np.linspace(0, 1, 100), 20)
    gap = np.zeros(20)
    gap[0] = 1
    assert verified_accuracy(gap, sampling, difference=True).low < 0
    assert verified_accuracy(gap, sampling).low >= 0
    gap[1] = -1
    wanted = verified_accuracy(gap, sampling, difference=True)
    assert verified_accuracy(gap, sampling) == wanted  # recognised by a value below 0


@pytest.mark.parametrize(
    ("value", "options"), [(np.nan, {}), (2, {}), (-1, {"difference": False}), (-2, {})]
)
def test_what_is_neither_right_nor_wrong_is_refused(value, options):
    sampling = choose_to_verify(np.linspace(0, 1, 50), 10)
    with pytest.raises(PredictionError, match="right or wrong must be 1 or 0"):
        verified_accuracy(np.array([value] + [1] * 9), sampling, **options)


@pytest.mark.parametrize("scores", [np.full(50, np.nan), np.linspace(0, 2, 50), np.ones((5, 10))])
def test_what_is_no_score_is_refused(scores):
    with pytest.raises(PredictionError, match=r"one score in 0\.\.1 per sample"):
        choose_to_verify(scores, 10)


@pytest.mark.parametrize(("budget", "strata"), [(9, 5), (51, 5), (10, 0)])
def test_an_impossible_budget_is_refused(budget, strata):
    with pytest.raises(ChoiceError, match="the budget must lie in"):
        choose_to_verify(np.linspace(0, 1, 50), budget, strata=strata)


def test_another_number_of_answers_is_refused():
    found = choose_to_verify(np.linspace(0, 1, 50), 10)
    with pytest.raises(PredictionError, match=r"each of the 10 samples .*got shape \(3,\)"):
        verified_accuracy(np.ones(3), found)


def test_too_few_samples_for_the_strata_are_refused():
    with pytest.raises(ChoiceError, match=r"3 samples are too few for 5 strata.*verify all"):
        choose_to_verify(np.linspace(0, 1, 3), 3)


NAMES = [f"kind {label}" for label in range(4)]


@pytest.fixture
def queue(hard, tmp_path):
    """A file to decide in, the draw that it holds, and the facts it is about."""
    sample_info = make_sample_info(samples=1000, classes=4, ids=[f"i{n}" for n in range(1000)])
    sampling = choose_to_verify(hard.predict().scores, 60)
    write_verification(sampling, tmp_path / "queue.csv", sample_info=sample_info)
    return tmp_path / "queue.csv", sampling, sample_info


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def rewrite(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def decide(path, truth, change=None):
    rows = rows_of(path)
    for row in rows:
        row["decided"] = str(truth[int(row["sample"])])
    rewrite(path, rows if change is None else change(rows))


def test_the_file_holds_the_draw_and_not_what_was_predicted(queue):
    path, sampling, _ = queue
    rows = rows_of(path)
    assert list(rows[0]) == ["sample", "id", "stratum", "stratum_samples", "drawn", "decided"]
    drawn = np.bincount(sampling.strata)
    assert [int(row["drawn"]) for row in rows] == drawn[sampling.strata].tolist()
    assert [int(row["sample"]) for row in rows] == sampling.samples.tolist()
    assert rows[0]["id"] == f"i{sampling.samples[0]}"
    assert [int(row["stratum"]) for row in rows] == sampling.strata.tolist()
    assert {row["stratum_samples"] for row in rows} == {"200"}
    assert {row["decided"] for row in rows} == {""}


@pytest.mark.parametrize("change", [None, lambda rows: rows[::-1]])
def test_decisions_give_the_accuracy_in_whatever_order(queue, hard, change):
    path, sampling, sample_info = queue
    decide(path, hard.truth, change)
    verified = read_verification(path, sample_info=sample_info)
    for rule in ("max-agreement", "majority"):
        prediction = hard.predict(rule)
        right = (prediction.labels == hard.truth)[sampling.samples]
        assert verified.accuracy(prediction) == verified_accuracy(right, sampling)
    wide = verified.accuracy(prediction, confidence=0.99)
    assert wide.confidence == 0.99


def test_strata_of_unequal_size_keep_their_sizes(hard, tmp_path):
    path, sample_info = (
        tmp_path / "queue.csv",
        make_sample_info(samples=998, classes=4, class_names=NAMES),
    )
    sampling = choose_to_verify(hard.predict().scores[:998], 40)
    assert len(set(sampling.sizes.tolist())) == 2
    write_verification(sampling, path, sample_info=sample_info)
    assert "id" not in rows_of(path)[0]

    def last_first(rows):
        return sorted(rows, key=lambda row: -int(row["stratum"]))

    decide(path, [NAMES[label] for label in hard.truth], last_first)
    read = read_verification(path, sample_info=sample_info)
    np.testing.assert_array_equal(read.sampling.sizes, sampling.sizes)
    np.testing.assert_array_equal(read.sampling.strata, sampling.strata)
    np.testing.assert_array_equal(read.labels, hard.truth[sampling.samples])


def test_decisions_are_not_overwritten(queue, hard):
    path, sampling, sample_info = queue
    write_verification(sampling, path, sample_info=sample_info)  # nobody has decided yet
    decide(path, hard.truth, lambda rows: [rows[0], *(row | {"decided": " "} for row in rows[1:])])
    before = path.read_bytes()
    with pytest.raises(RecordExists, match=r"holds a decision.*--verified"):
        write_verification(sampling, path, sample_info=sample_info)
    assert path.read_bytes() == before


def test_decisions_behind_a_quote_that_is_left_open_are_not_overwritten(queue):
    path, sampling, sample_info = queue
    text = 'sample,id,decided\n3,"i3,2\n'
    path.write_text(text)
    with pytest.raises(RecordExists, match=r"not a queue \(.*row of line 2 cannot be read"):
        write_verification(sampling, path, sample_info=sample_info)
    assert path.read_text() == text


@pytest.mark.parametrize("change", [lambda text: text.replace(",", ";"), str.title])
def test_decisions_in_another_form_are_not_overwritten(queue, hard, change):
    path, sampling, sample_info = queue
    decide(path, hard.truth)
    path.write_text(change(path.read_text()))
    before = path.read_bytes()
    with pytest.raises(RecordExists, match=r"queue\.csv: this file exists and is not a queue"):
        write_verification(sampling, path, sample_info=sample_info)
    assert path.read_bytes() == before


def test_empty_rows_at_the_end_are_no_samples(queue, hard):
    path, _, sample_info = queue
    decide(path, hard.truth)
    path.write_text(path.read_text() + ",,,,,\n, ,,,,,,\n")
    assert len(read_verification(path, sample_info=sample_info).labels) == 60


def test_an_undecided_sample_is_counted(queue, hard):
    path, _, sample_info = queue
    decide(
        path, hard.truth, lambda rows: [*rows[:-2], *(row | {"decided": ""} for row in rows[-2:])]
    )
    with pytest.raises(SourceError, match=r"2 of 60 samples are not decided.*Decide them, too"):
        read_verification(path, sample_info=sample_info)


def test_a_file_of_another_record_is_refused(queue, hard):
    path, _, _ = queue
    decide(path, hard.truth)
    other = make_sample_info(samples=1001, classes=4, ids=[f"i{n}" for n in range(1001)])
    with pytest.raises(RecordMismatch, match=r"strata have 1000 samples; the record has 1001"):
        read_verification(path, sample_info=other)
    with pytest.raises(RecordMismatch, match=r"the record has no ids"):
        read_verification(path, sample_info=make_sample_info(samples=1000, classes=4))


def another(rows):
    drawn = {row["sample"] for row in rows}
    sample = next(number for number in range(1000) if str(number) not in drawn)
    return rows[0] | {"sample": str(sample), "id": f"i{sample}"}


def only(rows, **changed):
    return [row | changed for row in rows]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda rows: [{k: v for k, v in row.items() if k != "stratum"} for row in rows],
            "it has no stratum. Decide in the file that",
        ),
        (lambda rows: only(rows, stratum="x"), "must be whole numbers"),
        (lambda rows: rows[1:], "18 samples of stratum 0 were drawn, and only 17 are listed"),
        (lambda rows: [*rows, another(rows)], "remove the added rows"),
        (lambda rows: only(rows, sample=""), "must be whole numbers"),
        (lambda rows: only(rows, stratum="1"), "strata must be 0, 1 … with one size each"),
        (lambda rows: [rows[0] | {"stratum_samples": "9"}, *rows[1:]], "Were rows changed"),
        (
            lambda rows: (
                [row for row in rows if row["stratum"] != "0"]
                + [row for row in rows if row["stratum"] == "0"][:1]
            ),
            "2 samples or more",
        ),
    ],
)
def test_a_damaged_file_is_refused(queue, hard, change, expected):
    path, _, sample_info = queue
    decide(path, hard.truth, change)
    with pytest.raises(SourceError, match=re.escape(expected)):
        read_verification(path, sample_info=sample_info)


def test_files_are_csv(queue, tmp_path):
    _, sampling, sample_info = queue
    with pytest.raises(ChoiceError, match=r"a queue is written as \.csv; got '\.json'"):
        write_verification(sampling, tmp_path / "queue.json", sample_info=sample_info)
    with pytest.raises(ChoiceError, match=r"verified samples are read from \.csv; got '\.json'"):
        read_verification(tmp_path / "queue.json", sample_info=sample_info)


def test_an_unreadable_file_is_refused(queue, tmp_path):
    _, sampling, sample_info = queue
    with pytest.raises(SourceError, match=r"gone\.csv: cannot be read"):
        read_verification(tmp_path / "gone.csv", sample_info=sample_info)
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(RecordExists, match=r"bytes\.csv: .* not a queue.* Name another one"):
        write_verification(sampling, tmp_path / "bytes.csv", sample_info=sample_info)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(RecordExists, match=r"folder\.csv: a folder .* Name another file"):
        write_verification(sampling, tmp_path / "folder.csv", sample_info=sample_info)
