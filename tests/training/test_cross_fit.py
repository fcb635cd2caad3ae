"""Every row of a cross-fitted record comes from networks that were not trained on it."""

import json

import numpy as np
import pytest
from killing import kill_run_after
from small_run import SMALL_CNN, changed, labels_of, train_text

import accord
from accord.data._dataset import assign_folds
from accord.errors import SourceError, SpecError
from accord.inference import infer
from accord.training import Run, parse_spec, plan_run
from accord.training._cross_fit import cross_fit_spec, fold_spec

FOLDS = 3
TEXT = changed(
    (SMALL_CNN, 'network = "mlp"\noptions = { widths = [16] }'),
    ('augment = ["shift"]', ""),
    ('splits = ["test", "train"]', 'splits = ["train"]\nprobabilities = true'),
    ("per_class = 20", f"per_class = 20\ncross_fit = {FOLDS}"),
)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    out = tmp_path_factory.mktemp("cross-fit") / "run"
    assert train_text(out, TEXT).failed == {}
    return out


def test_each_row_holds_what_the_networks_of_the_other_folds_predict(out):
    record, data = accord.open(out), Run.open(out).data
    given = data.splits["train"].labels
    np.testing.assert_array_equal(record.given, given)
    np.testing.assert_array_equal(record.truth, data.splits["train"].truth)
    assert record.split == "train"
    parts = assign_folds(given, FOLDS, seed=0)
    for fold in range(FOLDS):
        run = Run.open(out / f"folds/{fold}")
        held_out = run.data.splits["test"].inputs
        np.testing.assert_array_equal(held_out, data.splits["train"].inputs[parts == fold])
        assert not {row.tobytes() for row in held_out} & {
            row.tobytes() for row in run.data.splits["train"].inputs
        }
        test = accord.open(run.path / "test")
        np.testing.assert_array_equal(
            np.asarray(record.labels)[..., parts == fold], np.asarray(test.labels)
        )
        np.testing.assert_array_equal(
            np.asarray(record.probabilities)[:, :, parts == fold], np.asarray(test.probabilities)
        )


def test_a_killed_run_resumes_to_the_same_bits(out, tmp_path):
    kill_run_after(2, TEXT, tmp_path / "run", record="folds/1/test")
    assert not (tmp_path / "run/train").exists()
    train_text(tmp_path / "run", TEXT)
    np.testing.assert_array_equal(labels_of(tmp_path / "run", "train"), labels_of(out, "train"))


def test_an_interrupted_assembly_is_completed(out, tmp_path, monkeypatch):
    def stop(*arguments, epoch=[0]):  # noqa: B006 -- counts the calls
        epoch[0] += 1
        if epoch[0] == 3:
            raise KeyboardInterrupt
        return assembled_row(*arguments)

    from accord.training import _cross_fit

    assembled_row = _cross_fit._assembled_row
    monkeypatch.setattr(_cross_fit, "_assembled_row", stop)
    with pytest.raises(KeyboardInterrupt):
        train_text(tmp_path / "run", TEXT)
    monkeypatch.undo()
    train_text(tmp_path / "run", TEXT)
    np.testing.assert_array_equal(labels_of(tmp_path / "run", "train"), labels_of(out, "train"))


def test_networks_can_be_trained_apart(out, tmp_path):
    events = []
    train_text(tmp_path / "run", TEXT, networks=[1], progress=events.append)
    assert {event.network for event in events} == {1, 3, 5}
    assert {event.networks for event in events} == {3}
    assert accord.open(tmp_path / "run", networks=[1]).networks == 1
    train_text(tmp_path / "run", TEXT, networks=[0])
    np.testing.assert_array_equal(labels_of(tmp_path / "run", "train"), labels_of(out, "train"))


def test_a_network_that_fails_in_a_fold_is_left_out(tmp_path):
    text = TEXT.replace("networks = 2", "networks = [{}, { lr = 1e30 }]")
    result = train_text(tmp_path / "run", text)
    assert list(result.failed) == [1]
    assert result.failed[1].startswith("fold 0: ")
    assert accord.open(tmp_path / "run").networks == 1


def test_rows_keep_the_ids_of_the_file_and_rare_classes_are_named(tmp_path):
    rows = [f"{n},{n % 7},{'ab'[n % 2]}" for n in range(40)] + ["40,1,c", "41,2,c", "42,3,d"]
    (tmp_path / "own.csv").write_text("\n".join(["key,x,label", *rows]) + "\n")
    text = TEXT.replace(
        'kind = "digits"\nper_class = 20',
        f"kind = 'csv'\npath = '{tmp_path}/own.csv'\nids = 'key'\nheld_out = 0",
    ).replace('[noise]\nkind = "symmetric"\nrate = 0.4\n', "")
    result = train_text(tmp_path / "run", text)
    assert result.notes == (
        "fewer samples than the 3 folds have: c (2), d (1). No network can confirm the label of "
        "1 sample without another of its class: remove or merge such classes",
    )
    record = accord.open(tmp_path / "run")
    assert [str(one) for one in record.ids] == [str(n) for n in range(43)]
    assert record.epochs == 4


def test_the_option_changes_what_a_spec_records():
    spec = parse_spec(changed())
    found = cross_fit_spec(spec, 5)
    assert (found.data.cross_fit, found.record.splits) == (5, ("train",))
    assert found.record.probabilities
    assert cross_fit_spec(found, 5) == found
    with pytest.raises(SpecError, match=r"data.cross_fit is 5, but --cross-fit is 3"):
        cross_fit_spec(found, 3)
    with pytest.raises(SpecError, match=r"cross_fit and train.clean_only exclude each other"):
        cross_fit_spec(parse_spec(changed(("epochs = 4", "epochs = 4\nclean_only = true"))), 5)
    with pytest.raises(SpecError, match=r"data.fold must be below data.cross_fit; got 0 and None"):
        parse_spec(changed(("per_class = 20", "fold = 0")))


def test_a_spec_that_cross_fits_records_the_training_split_alone():
    with pytest.raises(SpecError, match=r'set record.splits = \["train"\]'):
        parse_spec(changed(("per_class = 20", "cross_fit = 3")))


def test_the_run_of_a_fold_is_an_ordinary_run(out):
    stored = Run.open(out / "folds/1").spec
    assert stored == fold_spec(parse_spec(TEXT), 1)
    assert json.loads(stored.model_dump_json())["data"]["fold"] == 1
    assert plan_run(stored, out / "folds/1").recorded == {0: 4, 1: 4}


def test_new_samples_need_one_of_the_folds(out):
    with pytest.raises(SourceError, match=r"is cross-fitted, .*folds/0, … To predict new samples"):
        infer(out, out)
