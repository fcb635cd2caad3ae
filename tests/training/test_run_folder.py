"""A run folder holds one run, and is claimed only once everything is checked."""

import numpy as np
import pytest
from small_run import SMALL_CNN, changed, train_text

import accord
from accord.errors import ChoiceError, RecordBusy, RecordMismatch, SourceError, SpecError
from accord.training import Run, parse_spec, plan_run
from accord.training._network_run import NetworkRun


@pytest.mark.parametrize(
    ("requested", "epochs"),
    [("0", []), ("1", [3]), ("2", [0, 3]), ("9", [0, 1, 2, 3]), ('"all"', [0, 1, 2, 3])],
)
def test_checkpoints_are_equally_spaced_and_include_the_last_epoch(requested, epochs):
    spec = parse_spec(changed(("checkpoints = 2", f"checkpoints = {requested}")))
    assert sorted(Run("new", spec).checkpoint_epochs) == epochs


@pytest.mark.parametrize(
    ("every", "requested", "epochs"),
    [
        ("3", "2", [2, 6]),
        ("3", "3", [2, 5, 6]),
        ("3", "7", [2, 5, 6]),
        ("3", '"all"', [2, 5, 6]),
        ("2", "3", [1, 5, 6]),
        ("9", "2", [6]),
        ("0.5", "3", [0, 3, 6]),
    ],
)
def test_checkpoints_belong_to_recorded_epochs(every, requested, epochs):
    text = changed(
        ("epochs = 4", "epochs = 7"),
        ("checkpoints = 2", f"checkpoints = {requested}\nevery = {every}"),
    )
    assert sorted(Run("new", parse_spec(text)).checkpoint_epochs) == epochs


def test_a_run_cannot_continue_with_other_data(tmp_path):
    def write(*columns):
        rows = "".join(f"{n},{100 * n},{n % 2}\n" for n in range(40))
        (tmp_path / "own.csv").write_text(",".join(columns) + "\n" + rows)

    data = f"kind = 'csv'\npath = '{tmp_path}/own.csv'\nheld_out = 0.5"
    text = changed(
        ('kind = "digits"\nper_class = 20', data),
        ('augment = ["shift"]', ""),
        (SMALL_CNN, 'network = "mlp"'),
    )
    write("a", "b", "label")
    train_text(tmp_path / "run", text, networks=[0])
    write("b", "a", "label")
    with pytest.raises(SourceError, match="the run began with other training data: columns was"):
        train_text(tmp_path / "run", text, networks=[1])


def test_unreadable_data_leave_no_folder(tmp_path, monkeypatch):
    def unreadable(_):
        raise SourceError("a.png: cannot be read as an image")

    monkeypatch.setattr("accord.training._run_folder.measure_input_schema", unreadable)
    with pytest.raises(SourceError, match=r"a\.png"):
        train_text(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_another_spec_is_refused_with_the_difference(whole):
    with pytest.raises(SpecError, match=r'(?s)another spec.*-  "rate": 0\.4.*\+  "rate": 0\.2'):
        train_text(whole, changed(("rate = 0.4", "rate = 0.2")))


def test_a_spec_that_cannot_start_leaves_no_folder(tmp_path):
    with pytest.raises(ChoiceError, match=r"holds out none\. Increase the share"):
        train_text(
            tmp_path / "run", changed(("per_class = 20", "per_class = 1\nvalidation = 0.01"))
        )
    assert not (tmp_path / "run").exists()
    text = changed(
        ("per_class = 20", "per_class = 1\nvalidation = 0.2"), ("epochs = 4", "epochs = 1")
    )
    assert train_text(tmp_path / "run", text).failed == {}


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('"small-cnn"', '"small-cmn"', "Did you mean 'small-cnn'"),
        ("width = 4", "widht = 4", "Did you mean 'width'"),
        ("width = 4", "width = -4", "small-cnn cannot be built with width=-4"),
        ("batch = 64", 'batch = 64\nloss = "elrr"', "Did you mean 'elr'"),
        ("networks = 2", 'networks = [{}, { network = "mlpp" }]', "Did you mean 'mlp'"),
    ],
)
def test_a_network_that_cannot_be_built_leaves_no_folder(tmp_path, old, new, match):
    text = changed((old, new))
    with pytest.raises(ChoiceError, match=match):
        plan_run(parse_spec(text), tmp_path / "run")
    with pytest.raises(ChoiceError, match=match):
        train_text(tmp_path / "run", text)
    assert not (tmp_path / "run").exists()


def test_missing_data_are_refused(tmp_path):
    text = changed(('kind = "digits"', f'kind = "cifar10"\npath = "{tmp_path}/nowhere"'))
    with pytest.raises(SourceError, match="nowhere"):
        train_text(tmp_path / "run", text)
    with pytest.raises(ChoiceError, match="Did you mean 'digits'"):
        train_text(tmp_path / "run2", changed(('kind = "digits"', 'kind = "digit"')))


def small_text(*pairs):
    return changed((SMALL_CNN, 'network = "mlp"'), ("epochs = 4", "epochs = 1"), *pairs)


def files_of(folder):
    return sorted(path.name for path in folder.iterdir())


def test_overwriting_starts_anew_and_keeps_other_files(tmp_path):
    out = tmp_path / "run"
    train_text(out, small_text())
    (out / "notes.txt").write_text("mine")
    before, other = files_of(out), small_text(("rate = 0.4", "rate = 0.2"))
    with pytest.raises(SpecError, match=r"another spec.*(?s:.*)--overwrite"):
        train_text(out, other)
    train_text(out, other, overwrite=True)
    assert files_of(out) == before
    assert Run.open(out).spec.noise.rate == 0.2
    given = accord.open(out / "train").given
    np.testing.assert_array_equal(given, Run.open(out).data.splits["train"].labels)


def test_overwriting_removes_folds(tmp_path):
    text = small_text(('"test", "train"', '"train"'), ("per_class = 20", "cross_fit = 2"))
    train_text(tmp_path / "run", text, networks=[0])
    train_text(tmp_path / "run", small_text(), overwrite=True)
    assert files_of(tmp_path / "run") == [
        "checkpoints", "metrics.csv", "samples.json", "spec.toml", "test", "train",
    ]  # fmt: skip


def test_only_runs_are_overwritten(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/cat.jpg").touch()
    with pytest.raises(SourceError, match=r"holds no spec\.toml, so it is not a run"):
        train_text(tmp_path / "photos", small_text(), overwrite=True)
    with accord.Recorder(tmp_path / "record", network=0, samples=2, classes=2) as recorder:
        recorder.record([0, 1])
    with pytest.raises(SourceError, match="is a record of predictions, not a run"):
        train_text(tmp_path / "record", small_text(), overwrite=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/spec.toml").write_text("[project]\nname = 'theirs'\n")
    with pytest.raises(SpecError, match="there is no key project"):
        train_text(tmp_path / "other", small_text(), overwrite=True)
    assert [files_of(tmp_path / name) for name in ("photos", "other")] == [
        ["cat.jpg"],
        ["spec.toml"],
    ]


def test_a_run_is_not_overwritten_by_what_cannot_start_or_while_it_trains(tmp_path):
    out = tmp_path / "run"
    train_text(out, small_text())
    before = files_of(out)
    with pytest.raises(ChoiceError, match="Did you mean 'digits'"):
        train_text(out, small_text(('"digits"', '"digit"')), overwrite=True)
    run = Run.open(out)
    with (
        NetworkRun(run, run.networks[0]),
        pytest.raises(RecordBusy, match="network-000"),
    ):
        train_text(out, small_text(), overwrite=True)
    assert files_of(out) == before


def test_a_finished_run_is_not_returned_for_other_labels(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("a,label\n" + "".join(f"{n},{n % 2}\n" for n in range(40)))
    data = f"kind = 'csv'\npath = '{path}'\nheld_out = 0.5"
    text = small_text(
        ('kind = "digits"\nper_class = 20', data),
        ('augment = ["shift"]', ""),
        ('kind = "symmetric"\nrate = 0.4', 'kind = "none"'),
    )
    train_text(tmp_path / "run", text)
    train_text(tmp_path / "run", text)
    path.write_text(path.read_text().replace("\n7,1\n", "\n7,0\n").replace("\n8,0\n", "\n8,1\n"))
    with pytest.raises(RecordMismatch, match=r"the run recorded other labels: .*--overwrite"):
        train_text(tmp_path / "run", text)
    train_text(tmp_path / "run", text, overwrite=True)
