"""Text and JSON of show, score and watch."""

import re
from dataclasses import replace

import numpy as np
import pytest

from accord._record import Record
from accord.analysis import Overview, compare_rules
from accord.analysis._scores import _notes
from accord.report._command_text import (
    bad_networks_text,
    description_text,
    score_json,
    score_text,
    watch_text,
)
from accord.store import ArrayReader, describe, import_arrays, make_sample_info


def text_of(record, rules=None, **options):
    return score_text(Overview.of(record.reader), compare_rules(record.reader, rules), **options)


def json_of(record, rules=None):
    return score_json(Overview.of(record.reader), compare_rules(record.reader, rules))


def test_json_names_the_recommended_rule_even_if_it_is_not_scored(record):
    scored = json_of(record, ["majority"])
    assert list(scored["rules"]) == ["majority"]
    assert scored["recommended"] == "before-overfit"
    assert "recommended" not in text_of(record, ["majority"])


def test_the_table_marks_the_recommended_rule(record, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    marked = [line for line in text_of(record).splitlines() if "recomm" in line]
    assert len(marked) == 1
    assert marked[0].startswith("before-overfit")
    assert marked[0].endswith("  recommended; from the first 3 of 8 epochs")


def test_a_long_note_wraps_below_itself_and_between_words(record, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    lines = text_of(record, ["before-overfit"]).splitlines()
    start = lines[3].index("recommended")
    assert lines[3].endswith("recommended; from the first 3")
    assert lines[4] == " " * start + "of 8 epochs"


def test_colours_mark_the_recommended_rule_and_oracles(record):
    lines = text_of(record, colour=True).splitlines()
    table = lines[next(at for at, line in enumerate(lines) if line.startswith("rule")) :]
    by_rule = {rule: next(line for line in table if rule in line) for rule in ("before", "oracle")}
    assert "32m" in by_rule["before"]  # green
    assert by_rule["oracle"].startswith("\033[2m")  # dim
    assert "\033" not in text_of(record)


def test_the_note_of_a_prediction_is_shown(make_record):
    alone = make_record(1, 4, 60, 3)
    rules = ["max-agreement", "weighted-agreement"]
    fields = json_of(alone, rules)["rules"]
    assert "note" not in fields["max-agreement"]
    note = fields["weighted-agreement"]["note"]
    assert " ".join(text_of(alone, rules).split()).endswith(note)


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ((1, 1, 1, 1), "1 network, 1 epoch, 1 sample, 1 class"),
        ((2, 2, 9, 3), "2 networks, 2 epochs, 9 samples, 3 classes"),
    ],
)
def test_sizes_are_singular_or_plural(make_record, shape, sizes):
    assert text_of(make_record(*shape), ["majority"]).splitlines()[0].endswith(f": {sizes}")


def test_a_description_of_one_sample_is_singular(tmp_path):
    import_arrays(tmp_path / "one", [[[0]]])
    text = description_text(describe(tmp_path / "one"))
    assert "  1 sample of the test split, 1 class\n" in text


def test_line_breaks_in_class_names_break_no_line(tmp_path):
    import_arrays(tmp_path / "record", [[[0, 1]]], class_names=["hot\ndog", "ice\r"])
    assert "\n  classes: hot dog, ice\n" in description_text(describe(tmp_path / "record")) + "\n"


def test_a_rule_that_always_abstains_has_no_selective_accuracy():
    labels = np.array([[[0, 1]], [[1, 0]]])
    torn = Record(ArrayReader(labels, make_sample_info(samples=2, classes=2, truth=[0, 1])))
    fields = json_of(torn, ["consensus", "majority"])["rules"]
    assert fields["consensus"]["coverage"] == 0.0
    assert "selective_accuracy" not in fields["consensus"]
    assert "coverage" not in fields["majority"]
    assert text_of(torn, ["consensus", "majority"]).splitlines()[-2].endswith("  0.0 % labelled")


def test_the_epoch_of_an_oracle_is_shown_with_its_progress(record):
    some = Record(record.reader.select(epochs=[1, 3]))
    found = json_of(some, ["oracle-best-epoch"])["rules"]["oracle-best-epoch"]
    assert found["progress"] == [2, 4][found["epoch"]]
    expected = f"oracle: best after {found['progress']:g} of 4 epochs"
    assert expected in " ".join(text_of(some, ["oracle-best-epoch"]).split())


def test_a_long_agreement_curve_is_thinned(make_record):
    record = make_record(2, 60, 40, 3)
    text = watch_text(Overview.of(record.reader), record.watch(), record.network_health())
    epochs = [int(line.split()[0]) for line in text.splitlines() if line.endswith("#")]
    assert epochs == list(range(1, 61, 3))


def test_good_networks_need_no_warning(record):
    assert bad_networks_text(record.network_health()) == ""


def made(*, samples=400, **known):
    """Networks that are right at first and repeat 40 % wrong labels at the end."""
    generator = np.random.default_rng(0)
    labels = np.tile(TRUTH, (4, 12, 1))
    late = generator.random(samples) < 0.4
    labels[:, 8:, late] = (TRUTH[late] + 1) % 3
    scattered = generator.random(labels.shape) < 0.1
    labels[scattered] = generator.integers(3, size=scattered.sum())
    return Record(ArrayReader(labels, make_sample_info(samples=samples, classes=3, **known)))


TRUTH = np.random.default_rng(1).integers(3, size=400)


def test_the_recommended_rule_leads():
    record = made(truth=TRUTH)
    found = compare_rules(record.reader)
    first = " ".join(text_of(record).split("\n\n")[1].split())
    assert first.startswith(f"Recommended: {found.recommended}, which is right on")
    before, after = (float(one) for one in re.findall(r"right on ([\d.]+) %", first)[::-1])
    assert f": {after - before:.1f} points more (95 % interval +" in first


def test_an_interval_that_contains_0_is_no_clear_difference():
    record = made(truth=TRUTH).select(epochs=slice(1))
    assert not compare_rules(record.reader).gain.significant
    assert "no clear difference (95 % interval" in " ".join(text_of(record).split())


def test_agreement_with_given_labels_is_never_called_right():
    text = " ".join(text_of(made(given=TRUTH, split="test")).split())
    assert "it is not accuracy" in text
    assert text.index("Recommended: ") < text.index("No true labels are known")
    assert "of the given labels" in text
    assert "right on" not in text.replace("is right on an estimated", "")


def test_training_samples_get_no_headline():
    assert "Recommended:" not in text_of(made(truth=TRUTH, given=TRUTH, split="train"))


def test_true_labels_that_contradict_the_recommendation_are_noted():
    context = made(truth=TRUTH).reader
    found = replace(compare_rules(context), recommended="majority")
    assert "the true labels contradict the recommendation" in next(_notes(found, context))
    assert not any("contradict" in note for note in compare_rules(context).notes)


@pytest.mark.parametrize(("split", "noted"), [("test", True), ("train", False)])
def test_given_labels_that_contradict_the_recommendation_are_noted_where_held_out(split, noted):
    context = made(given=TRUTH, split=split).reader
    found = replace(compare_rules(context), recommended="majority")
    notes = [note for note in _notes(found, context) if "the given labels contradict" in note]
    assert len(notes) == noted
    assert all("the recommended majority with" in note for note in notes)
