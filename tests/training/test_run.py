"""A run folder holds one run, and is claimed only once everything is checked."""

import pytest
from small_run import SMALL_CNN, changed, train_text

from accord.errors import ChoiceError, SourceError, SpecError
from accord.training import Run, parse_spec, plan_run


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

    monkeypatch.setattr("accord.training._run.measure_input_schema", unreadable)
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
