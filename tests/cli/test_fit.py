"""A rule is fitted on one record and predicts others."""

import numpy as np
import pytest
from voting import draw_rows

from accord._record import open_record
from accord._recorder import Recorder
from accord.rules import find_rule

DRAWN = {"networks": 4, "accuracies": (0.4, 0.8, 0.9, 0.5), "turns": 0.8, "classes": 4}


def write_rows(path, *, epochs=None, split="test", **options):
    """Write drawn votes as recorders do; `epochs` is the number for each network."""
    rows = draw_rows(**(DRAWN | options))
    labels = rows.read_labels(range(rows.networks), range(rows.epochs), slice(None))
    for number, err in enumerate(labels):
        sample_info = {"samples": rows.samples, "classes": rows.classes, "split": split}
        with Recorder(path, network=number, **sample_info) as recorder:
            for row in err[: None if epochs is None else epochs[number]]:
                recorder.record(row)
    return str(path)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    return write_rows(tmp_path_factory.mktemp("fit") / "first")


@pytest.fixture(scope="module")
def second(tmp_path_factory):
    return write_rows(tmp_path_factory.mktemp("fit") / "second", samples=90, seed=1)


def labels_in(out):
    return [int(line) for line in out.splitlines()]


@pytest.mark.parametrize(
    "rule", ["before-overfit", "dawid-skene", "leave-one-out", "weighted-agreement"]
)
def test_a_rule_fitted_on_one_record_predicts_another(accord, first, second, tmp_path, rule):
    file = tmp_path / "rule.npz"
    status, out, err = accord("fit", first, "--rule", rule, "--out", file)
    assert (status, out) == (0, "")
    assert f"{file}: {rule}, fitted on 4 networks, 4 epochs, 600 samples. " in err
    assert f"Next: accord predict RECORD --fitted {file}" in err
    status, out, err = accord("predict", second, "--fitted", file)
    assert (status, err) == (0, "")
    fitted = find_rule(rule).fit(open_record(first).reader)
    assert labels_in(out) == fitted(open_record(second).reader).labels.tolist()
    own = open_record(second).predict(rule).scores
    assert not np.array_equal(own, fitted(open_record(second).reader).scores)


def test_dawid_skene_is_fitted_by_default(accord, first, tmp_path):
    assert accord("fit", first, "--out", tmp_path / "rule.npz")[0] == 0
    with np.load(tmp_path / "rule.npz") as found:
        assert str(found["rule"]) == "dawid-skene"


def test_the_recommended_rule_is_fitted_and_named(accord, first, tmp_path):
    chosen = open_record(first).recommend()
    file = tmp_path / "rule.npz"
    status, _, err = accord("fit", first, "--rule", "recommended", "--out", file)
    assert status == 0
    assert f"accord: recommended: {chosen.rule}, as {chosen.reason}" in err
    assert f"{file}: {chosen.rule}, fitted on" in err
    assert open_record(first).fit("recommended").name == chosen.rule != "recommended"


def test_fitting_on_training_samples_prints_a_warning(accord, first, tmp_path):
    train = write_rows(tmp_path / "train", split="train")
    status, out, err = accord("fit", train, "--out", tmp_path / "rule.npz")
    assert (status, out) == (0, "")
    assert "accord: the networks were trained on these samples" in err
    assert "trained on" not in accord("fit", first, "--out", tmp_path / "rule.npz")[2]


def test_the_fitted_rule_is_named_where_its_labels_are_written(accord, first, second, tmp_path):
    accord("fit", first, "--out", tmp_path / "rule.npz")
    labels = tmp_path / "labels.npy"
    chosen = ("--fitted", tmp_path / "rule.npz", "--out", labels)
    status, out, err = accord("predict", second, *chosen)
    assert (status, out) == (0, "")
    assert err == f"{labels}: 90 labels by dawid-skene\n"


def test_a_rule_is_fitted_on_some_networks_and_epochs(accord, first, second, tmp_path):
    chosen = ("--networks", "2,0", "--epochs", "1:")
    status, _, err = accord("fit", first, *chosen, "--out", tmp_path / "rule.npz")
    assert status == 0
    assert "2 networks, 3 epochs" in err
    _, out, _ = accord("predict", second, *chosen, "--fitted", tmp_path / "rule.npz")
    some = [open_record(path).select(networks=[2, 0], epochs=slice(1, None)).reader
            for path in (first, second)]  # fmt: skip
    assert labels_in(out) == find_rule("dawid-skene").fit(some[0])(some[1]).labels.tolist()


def test_common_cuts_networks_of_unequal_length(accord, tmp_path):
    path = write_rows(tmp_path / "unequal", epochs=(4, 3, 3, 4))
    status, _, err = accord("fit", path, "--out", tmp_path / "rule.npz")
    assert status == 1
    assert "To use the epochs that all have: --common" in err
    status, _, err = accord("fit", path, "--common", "--out", tmp_path / "rule.npz")
    assert status == 0
    assert "4 networks, 3 epochs" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"networks": 3}, "fitted on 4 networks; this record has 3"),
        ({"accuracies": (0.9,) * 5}, "fitted on 4 epochs; this record has 5"),
        ({"classes": 3}, "fitted on 4 classes; this record has 3"),
    ],
)
def test_a_record_of_other_networks_is_refused(accord, first, tmp_path, options, words):
    accord("fit", first, "--out", tmp_path / "rule.npz")
    other = write_rows(tmp_path / "other", samples=60, **options)
    status, out, err = accord("predict", other, "--fitted", tmp_path / "rule.npz")
    assert (status, out) == (1, "")
    assert f"accord: {other}: dawid-skene was {words}" in err
    assert "only of the same networks and epochs" in err


@pytest.mark.parametrize("rule", ["max-agreement", "majority", "oracle-best-epoch"])
def test_a_rule_that_cannot_be_fitted_is_refused(accord, first, tmp_path, rule):
    status, out, err = accord("fit", first, "--rule", rule, "--out", tmp_path / "rule.npz")
    assert (status, out) == (2, "")
    assert f"{rule} has no parameters" in err
    assert "Rules that can be fitted: before-overfit, dawid-skene, leave-one-out, weighted" in err
    assert not (tmp_path / "rule.npz").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["fit", "RECORD"], 2, "Missing option '--out'"),
        (["fit", "RECORD", "--out", "rule.txt"], 2, "rule.txt: a fitted rule is saved as an"),
        (["fit", "RECORD", "--rule", "dawid", "--out", "r.npz"], 2, "Did you mean 'dawid-skene'?"),
        (["fit", "RECORD", "--networks", "1", "--out", "r.npz"], 2, "and there is one"),
        (["fit", "nowhere", "--out", "r.npz"], 1, "nowhere: no such file or folder"),
        (["predict", "RECORD", "--fitted", "no.npz"], 1, "no.npz: not a readable .npz file"),
        (["predict", "RECORD", "--fitted", "TEXT"], 1, "It is written by `accord fit`"),
        (["predict", "RECORD", "--fitted", "LATER"], 1, "in format 2; this Accord reads format 1"),
        (["predict", "RECORD", "--fitted", "TORN"], 1, "not a readable .npz file"),
        (["fit", "RECORD", "--out", "TEXT/rule.npz"], 1, "rule.npz: cannot write"),
        (["predict", "RECORD", "--fitted", "ARRAYS"], 1, "but no fitted rule"),
        (["predict", "RECORD", "--fitted", "MAJORITY"], 1, "'majority' is fitted"),
        (["predict", "RECORD", "--fitted", "HALF"], 1, "needs weights; the file has none"),
        (["predict", "RECORD", "--rule", "majority", "--fitted", "x.npz"], 2, "Leave one of them"),
    ],
)  # fmt: skip
def test_mistakes_are_named(accord, first, tmp_path, arguments, status, words):
    files = {name: tmp_path / f"{name.lower()}.npz" for name in ("TEXT", "ARRAYS")}
    files["TEXT"].write_text("label\n1\n")
    np.savez(files["ARRAYS"], labels=np.zeros(3))
    for name, rule in (("MAJORITY", "majority"), ("HALF", "weighted-agreement")):
        files[name] = tmp_path / f"{name.lower()}.npz"
        np.savez(files[name], rule=np.array(rule))
    files["LATER"] = tmp_path / "later.npz"
    later = {"rule": np.array("weighted-agreement"), "version": np.array(2)}
    np.savez(files["LATER"], weights=np.ones(4), **later)
    files["TORN"] = tmp_path / "torn.npz"
    np.savez_compressed(files["TORN"], rule=np.array("weighted-agreement"), weights=np.ones(4))
    whole = bytearray(files["TORN"].read_bytes())
    at = whole.index(b"weights.npy") + len(b"weights.npy") + 30
    whole[at : at + 8] = b"\xff" * 8
    files["TORN"].write_bytes(whole)
    files["TEXT/rule.npz"] = files["TEXT"] / "rule.npz"
    given = [{"RECORD": first, **files}.get(argument, argument) for argument in arguments]
    found, out, err = accord(*given)
    assert (found, out) == (status, "")
    assert words in err


def test_the_file_name_is_checked_before_the_record(accord):
    status, _, err = accord("fit", "nowhere", "--out", "rule.txt")
    assert status == 2
    assert "rule.txt: a fitted rule is saved as an .npz file" in err


def test_an_error_names_both_the_rule_and_the_file(accord, first):
    _, _, err = accord("predict", first, "--rule", "single", "--fitted", "rule.npz")
    assert "--rule single and --fitted rule.npz both name a rule" in err


def test_the_recommended_rule_is_used_and_named(accord, first):
    found = open_record(first).recommend()
    status, out, err = accord("predict", first, "--rule", "recommended")
    assert status == 0
    assert err == f"accord: recommended: {found.rule}, as {found.reason}\n"
    assert found.rule == "leave-one-out"
    assert labels_in(out) == open_record(first).predict("leave-one-out").labels.tolist()


def test_the_recommendation_is_for_the_networks_that_are_chosen(accord, first):
    chosen = ("--rule", "recommended", "--networks", "1")
    status, out, err = accord("predict", first, *chosen)
    assert status == 0
    assert err == "accord: recommended: max-agreement, as there is one network\n"
    assert labels_in(out) == open_record(first).select(networks=[1]).predict().labels.tolist()


def test_the_note_of_a_prediction_is_on_standard_error(accord, first):
    chosen = ("--rule", "weighted-agreement", "--networks", "1")
    status, out, err = accord("predict", first, *chosen)
    assert status == 0
    assert err.startswith("accord: weighted-agreement: the epochs of a single network")
    assert len(labels_in(out)) == 600


@pytest.mark.parametrize(
    "rule", ["before-overfit", "dawid-skene", "leave-one-out", "weighted-agreement"]
)
def test_other_epochs_than_fitted_are_refused_by_their_progress(accord, first, tmp_path, rule):
    file = tmp_path / "rule.npz"
    accord("fit", first, "--rule", rule, "--networks", "0,1", "--epochs", ":2", "--out", file)
    chosen = ("--networks", "0,1", "--epochs", "2:", "--fitted", file)
    status, out, err = accord("predict", first, *chosen)
    assert (status, out) == (1, "")
    assert f"{first}: {rule} was fitted on epochs of progress 1, 2; this record has 3, 4." in err


def test_other_networks_than_fitted_are_refused_by_their_numbers(accord, first, tmp_path):
    file = tmp_path / "rule.npz"
    accord("fit", first, "--networks", "0,1", "--out", file)
    status, out, err = accord("predict", first, "--networks", "2,3", "--fitted", file)
    assert (status, out) == (1, "")
    assert "dawid-skene was fitted on networks 0, 1; this record has 2, 3." in err


def test_an_older_file_is_used_with_a_note(accord, first, tmp_path):
    accord("fit", first, "--out", tmp_path / "rule.npz")
    with np.load(tmp_path / "rule.npz") as kept:
        old = {name: kept[name] for name in kept.files if name not in ("networks", "progress")}
    np.savez(tmp_path / "old.npz", **old)
    status, out, err = accord("predict", first, "--fitted", tmp_path / "old.npz")
    assert status == 0
    assert len(labels_in(out)) == 600
    assert "dawid-skene: the file does not name its networks and epochs" in err


def test_one_epoch_is_singular(accord, first, tmp_path):
    chosen = ("--rule", "weighted-agreement", "--epochs", ":1", "--out", tmp_path / "rule.npz")
    assert "fitted on 4 networks, 1 epoch, 600 samples." in accord("fit", first, *chosen)[2]
