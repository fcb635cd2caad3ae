"""`accord score` names the rules that it leaves out."""

import json

import numpy as np
import pytest
from recorded import labels_of, votes_of, winners_by_definition

from accord._record import open_record
from accord.store import import_arrays

CLASSES = 6000


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """Dawid–Skene's matrices would take 5 GiB."""
    path = tmp_path_factory.mktemp("score") / "wide"
    truth = np.random.default_rng(0).integers(0, CLASSES, 30)
    import_arrays(path, np.tile(truth, (5, 4, 1)), classes=CLASSES, truth=truth)
    return str(path)


def test_a_rule_that_is_left_out_is_named_on_standard_error(accord, wide):
    status, out, err = accord("score", wide)
    assert status == 0
    assert "max-agreement" in out
    assert "dawid-skene" not in out
    why = "its 6000 × 6000 confusion matrices would be too large"
    rules = ("before-overfit", "dawid-skene")
    assert err.startswith("".join(f"accord: {rule} is left out: {why}\n" for rule in rules))


def test_json_names_what_is_left_out(accord, wide):
    status, out, _ = accord("score", wide, "--json")
    found = json.loads(out)
    assert status == 0
    assert "dawid-skene" not in found["rules"]
    assert list(found["left_out"]) == ["before-overfit", "dawid-skene"]


def test_named_rules_leave_nothing_out(accord, wide):
    status, out, err = accord("score", wide, "--rule", "majority", "--json")
    assert status == 0
    assert "left out" not in err
    assert "left_out" not in json.loads(out)


def test_notes_are_printed_and_in_json(accord, wide):
    _, out, err = accord("score", wide, "--json")
    notes = json.loads(out)["notes"]
    assert notes[0].startswith("all 5 networks predict the same classes at every epoch")
    assert err.endswith("".join(f"accord: {note}\n" for note in notes))


def test_a_named_rule_that_is_too_large_is_an_error(accord, wide):
    status, out, err = accord("score", wide, "--rule", "dawid-skene")
    assert (status, out) == (1, "")
    assert "confusion matrices would take 5 GiB" in err


def test_an_empty_name_is_no_rule(accord, wide):
    status, out, err = accord("score", wide, "--rule", "")
    assert (status, out) == (2, "")
    assert "no rule is called ''" in err


def test_the_recommended_rule_is_scored_under_its_own_name(accord, wide):
    status, out, err = accord("score", wide, "--rule", "recommended", "--json")
    found = json.loads(out)
    assert status == 0
    assert list(found["rules"]) == [found["recommended"]]
    assert err.startswith(f"accord: recommended: {found['recommended']}, as ")
    (scored,) = open_record(wide).score(["recommended"])
    assert scored.rule == found["recommended"]


def test_score_json_is_an_independent_count(accord, record):
    status, out, _ = accord("score", record, "--json")
    scored = json.loads(out)
    assert status == 0
    assert [scored[key] for key in ("networks", "epochs", "samples", "classes")] == [3, 4, 40, 5]
    assert scored["recommended"] == "max-agreement"  # the record holds 40 samples
    labels, truth = votes_of(range(3), range(4)), labels_of(9, 9)
    rules = scored["rules"]
    assert rules["max-agreement"]["accuracy"] == np.mean(winners_by_definition(labels) == truth)
    assert rules["majority"]["accuracy"] == np.mean(winners_by_definition(labels[:, -1:]) == truth)
    per_network = (labels[:, -1] == truth).mean(axis=1).tolist()
    assert rules["single"]["per_network"] == per_network
    assert rules["single"]["accuracy"] == pytest.approx(np.mean(per_network), abs=1e-15)
    by_epoch = [np.mean(winners_by_definition(labels[:, [e]]) == truth) for e in range(4)]
    assert rules["oracle-best-epoch"] | {"balanced_accuracy": 0} == {
        "accuracy": max(by_epoch),
        "epoch": int(np.argmax(by_epoch)),
        "progress": float(np.argmax(by_epoch) + 1),
        "oracle": True,
        "balanced_accuracy": 0,
    }
    assert "probability-average" not in rules


def test_score_takes_networks_and_epochs(accord, record):
    chosen = ["score", record, "--json", "--networks", "2,0", "--epochs", ":2"]
    scored = json.loads(accord(*chosen)[1])
    assert (scored["networks"], scored["epochs"]) == (2, 2)
    labels = votes_of([2, 0], range(2))
    expected = np.mean(winners_by_definition(labels) == labels_of(9, 9))
    assert scored["rules"]["max-agreement"]["accuracy"] == expected


def test_score_prints_a_table(accord, record):
    status, out, _ = accord("score", record, "--rule", "majority", "--rule", "max-agreement")
    assert status == 0
    lines = out.splitlines()
    assert lines[0].endswith("3 networks, 4 epochs, 40 samples, 5 classes")
    table = [line.split() for line in lines[-3:]]
    assert table[0] == ["rule", "accuracy", "balanced"]
    assert [row[0] for row in table[1:]] == ["majority", "max-agreement"]
