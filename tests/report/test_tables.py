import numpy as np

from accord._record import Record
from accord.report._record_text import description_text, score_json, score_text
from accord.store import ArrayReader, describe, import_arrays, make_sample_info


def test_the_recommendation_is_told_even_if_that_rule_is_not_scored(record):
    scored = score_json(record, record.score(["majority"]))
    assert list(scored["rules"]) == ["majority"]
    assert scored["recommended"] == "before-overfit"
    assert "recommended" not in score_text(record, record.score(["majority"]))


def test_the_recommended_rule_is_marked_in_the_table(record):
    marked = [line for line in score_text(record, record.score()).splitlines() if "recomm" in line]
    assert len(marked) == 1
    assert marked[0].startswith("before-overfit")
    assert marked[0].endswith("  recommended; from the first 3 of 8 epochs")


def test_what_a_rule_has_to_say_of_its_prediction_is_passed_on(make_record):
    alone = make_record(1, 4, 60, 3)
    scores = alone.score(["max-agreement", "weighted-agreement"])
    fields = score_json(alone, scores)["rules"]
    assert "note" not in fields["max-agreement"]
    assert fields["weighted-agreement"]["note"].startswith("the epochs of a single network")
    agreed, weighted = score_text(alone, scores).splitlines()[-2:]
    assert agreed.endswith("  recommended")
    assert "  the epochs of a single network" in weighted


def test_one_is_not_told_as_many(make_record, tmp_path):
    one = make_record(1, 1, 1, 1)
    head = score_text(one, one.score(["majority"])).splitlines()[0]
    assert head.endswith(": 1 network, 1 epoch, 1 sample, 1 class")
    many = make_record(2, 2, 9, 3)
    head = score_text(many, many.score(["majority"])).splitlines()[0]
    assert head.endswith(": 2 networks, 2 epochs, 9 samples, 3 classes")
    import_arrays(tmp_path / "one", [[[0]]])
    told = description_text(describe(tmp_path / "one"))
    assert "  1 sample of the test split, 1 class\n" in told


def test_line_breaks_in_class_names_break_no_line(tmp_path):
    import_arrays(tmp_path / "record", [[[0, 1]]], class_names=["hot\ndog", "ice\r"])
    assert "\n  classes: hot dog, ice\n" in description_text(describe(tmp_path / "record")) + "\n"


def test_a_rule_that_labels_nothing_is_told_so():
    labels = np.array([[[0, 1]], [[1, 0]]])
    torn = Record(ArrayReader(labels, make_sample_info(samples=2, classes=2, truth=[0, 1])))
    scores = torn.score(["consensus", "majority"])
    fields = score_json(torn, scores)["rules"]
    assert fields["consensus"]["coverage"] == 0.0
    assert "selective_accuracy" not in fields["consensus"]
    assert "coverage" not in fields["majority"]
    assert score_text(torn, scores).splitlines()[-2].endswith("  0.0 % labelled")


def test_of_some_epochs_the_one_chosen_is_told_with_its_true_epoch(record):
    some = Record(record.reader.select(epochs=[1, 3]))
    scores = some.score(["oracle-best-epoch"])
    found = score_json(some, scores)["rules"]["oracle-best-epoch"]
    assert found["progress"] == [2, 4][found["epoch"]]
    told = (
        f"epoch {found['epoch']} of those read (after {found['progress']:g} epochs of training) was"
    )
    assert told in score_text(some, scores)
