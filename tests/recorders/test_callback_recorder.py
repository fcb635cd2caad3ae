"""Callbacks resume a record, append what is due, and join their framework's callback class."""

import logging
import pickle
import re
import subprocess
import sys
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest

import accord
from accord._recorders.callback_recorder import CallbackRecorder, FrameworkCallback
from accord._recorders.network_outputs import labels_or_scores
from accord.errors import ChoiceError, ExtraMissing, PredictionError, RecordBusy, RecordError


def recorder_at(path, *, every=1.0, **options):
    return CallbackRecorder(path, network=0, samples=3, classes=2, every=every, options=options)


def append(recorder, *rows):
    for row in rows:
        progress = recorder.recorded.epochs + 1.0
        recorder.append(np.array(row), progress=progress, metrics={"loss": 0.5})


def test_it_resumes_after_the_last_row(tmp_path):
    first = recorder_at(tmp_path)
    assert first.open() == (0, 0.0)
    append(first, [0, 1, 1], [0, 0, 1])
    assert first.recorded == (2, 2.0)
    first.close()
    second = recorder_at(tmp_path)
    assert second.open() == (2, 2.0)
    assert not second.is_due(1, 2)
    assert second.is_due(2, 3)
    append(second, [1, 1, 1])
    assert not second.is_due(2, 3)
    second.close()
    record = accord.open(tmp_path)
    assert np.asarray(record.labels).tolist() == [[[0, 1, 1], [0, 0, 1], [1, 1, 1]]]
    assert record.networks_info[0].metrics[2] == {"loss": 0.5}


def test_the_last_epoch_is_due_even_between_multiples(tmp_path):
    recorder = recorder_at(tmp_path, every=2)
    recorder.open()
    for epoch in range(1, 6):
        if recorder.is_due(epoch - 1, epoch, last=epoch == 5):
            recorder.append(np.array([0, 1, 1]), progress=epoch, metrics={})
    recorder.close()
    assert accord.open(tmp_path).progress == (2, 4, 5)
    longer = recorder_at(tmp_path, every=2)
    longer.open()
    longer.check_complete(5)
    assert longer.is_due(5, 6)
    longer.close()


def test_opening_again_closes_the_record_first(tmp_path):
    recorder = recorder_at(tmp_path)
    recorder.open()
    append(recorder, [0, 1, 1])
    assert recorder.open() == (1, 1.0)
    recorder.close()
    recorder.close()


def test_a_gap_is_refused_and_named(tmp_path):
    recorder = recorder_at(tmp_path, every=0.5)
    recorder.open()
    recorder.check_complete(0.4)
    with pytest.raises(
        RecordError, match=r"holds 0 epochs.*from progress 1: the row at progress 0\.5 is missing"
    ):
        recorder.check_complete(1)
    with pytest.raises(RecordError, match=r"the row at progress 0\.5 is missing"):
        recorder.is_due(0.75, 1)
    recorder.close()


def test_a_step_that_passes_two_rows_is_refused(tmp_path):
    recorder = recorder_at(tmp_path, every=0.1)
    with pytest.raises(ChoiceError, match="more rows than training has steps"):
        recorder.is_due(0, 0.5)


def test_training_from_scratch_warns_of_rows_in_the_record(tmp_path, caplog):
    recorder = recorder_at(tmp_path)
    recorder.open()
    with caplog.at_level(logging.WARNING):
        recorder.warn_if_recorded()
        assert caplog.text == ""
        append(recorder, [0, 1, 1])
        recorder.warn_if_recorded()
    recorder.close()
    assert "network 0 already holds 1 epoch; training starts from scratch" in caplog.text


@pytest.mark.parametrize(
    ("reached", "words"),
    [
        ((), "It ended before its first epoch: check the number of epochs and the data"),
        ((0.02,), r"at progress 0\.02, and the first row is due at 1\. .*often: every=0\.02$"),
        ((0.5,), r"often: every=0\.1$"),
    ],
)
def test_a_training_that_recorded_nothing_is_reported_with_the_reason(
    tmp_path, caplog, reached, words
):
    recorder = recorder_at(tmp_path)
    recorder.open()
    for progress in reached:
        recorder.is_due(0, progress)
    recorder.close()
    (message,) = caplog.messages
    assert re.search(words, message)


def test_a_second_training_that_recorded_nothing_names_the_first(tmp_path, caplog):
    for _ in range(2):
        recorder = recorder_at(tmp_path)
        recorder.open()
        if recorder.is_due(0, 1):
            append(recorder, [0, 1, 1])
        recorder.close()
    (message,) = caplog.messages
    assert "ended at progress 1, and the record already holds 1 epoch of an earlier one" in message
    recorder = recorder_at(tmp_path, overwrite=True)
    assert recorder.open().epochs == 0
    append(recorder, [0, 1, 1])
    assert recorder.open().epochs == 1  # training continues
    recorder.close(quiet=True)


def test_a_second_recorder_is_refused_with_the_way_to_close_the_first(tmp_path):
    first = recorder_at(tmp_path)
    first.open()
    with pytest.raises(RecordBusy, match=r"another recorder.*attached twice.*callback\.close\(\)"):
        recorder_at(tmp_path).open()
    first.close()


def test_an_error_closes_the_record(tmp_path):
    recorder = recorder_at(tmp_path)
    recorder.open()
    with pytest.raises(KeyError, match="x"), recorder.closed_on_error():
        raise KeyError("x")
    recorder_at(tmp_path).open()
    with pytest.raises(ChoiceError, match="only while training runs"):
        append(recorder, [0, 1, 1])


def test_nan_scores_are_refused_with_the_sample(tmp_path):
    recorder = recorder_at(tmp_path, ids=["a", "b", "c"])
    recorder.open()
    kept = labels_or_scores(np.array([[0, 1], [0, np.nan], [2, 1]]), classes=2, probabilities=False)
    with pytest.raises(
        PredictionError, match=r"network 0, epoch 0 \(progress 1\): .*NaN.*1 of 3 samples: 'b'"
    ):
        append(recorder, kept)
    append(recorder, [0, 1, 1])
    recorder.close()


def test_tables_hold_logits_or_probabilities(tmp_path):
    recorder = recorder_at(tmp_path, probabilities=True)
    recorder.open()
    table = np.array([[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]])
    recorder.append(table, progress=1, metrics={}, are_logits=False)
    recorder.append(table, progress=2, metrics={})
    recorder.close()
    found = np.asarray(accord.open(tmp_path).probabilities)[0]
    np.testing.assert_array_equal(found[0], table)
    np.testing.assert_allclose(found[1, 0], [0.6225, 0.3775], atol=1e-3)


def test_options_are_checked_before_training(tmp_path):
    with pytest.raises(PredictionError, match=r"given must have shape \(3,\)"):
        recorder_at(tmp_path, given=[0])
    with pytest.raises(PredictionError, match="class_names must be 2 names"):
        recorder_at(tmp_path, class_names=["a"])
    with pytest.raises(PredictionError, match="ids must be unique"):
        recorder_at(tmp_path, ids=[1, 1, 2])
    with pytest.raises(
        TypeError, match="unexpected argument 'turth'; it passes on to the recorder: truth"
    ):
        recorder_at(tmp_path, turth=[0, 1, 1])
    assert not list(tmp_path.iterdir())


class Hooks:
    """The callback class of a framework."""

    def __init__(self):
        self.built = True

    def on_end(self):
        return "framework"

    def on_begin(self):
        return "framework"


@pytest.fixture
def frameworks(monkeypatch):
    """Make one of two frameworks importable that do not exist otherwise."""

    def put(name):
        module = ModuleType(name)
        module.Callback = type("Callback", (Hooks,), {})
        monkeypatch.setitem(sys.modules, name, module)
        return module

    return put


class Example(FrameworkCallback):
    modules: ClassVar = ("framework_one", "framework_two")
    base: ClassVar = "Callback"
    extra: ClassVar = "lightning"

    def __init__(self, value):
        super().__init__()
        self.value = value

    def on_end(self):
        return "example"


def test_an_instance_is_also_a_callback_of_the_framework(frameworks):
    base = frameworks("framework_two").Callback
    one = Example(3)
    assert isinstance(one, Example)
    assert isinstance(one, base)
    assert type(one).__name__ == "Example"
    assert (one.value, one.built) == (3, True)
    assert (one.on_begin(), one.on_end()) == ("framework", "example")
    assert type(Example(4)) is type(one)
    assert type(type(one)(5)) is type(one)


def test_the_first_importable_package_name_is_used(frameworks):
    second = frameworks("framework_two").Callback
    assert isinstance(Example(1), second)
    first = frameworks("framework_one").Callback
    assert isinstance(Example(1), first)
    assert not isinstance(Example(1), second)


def test_the_package_name_that_is_already_imported_is_preferred(frameworks, monkeypatch, tmp_path):
    (tmp_path / "framework_one.py").write_text("class Callback: pass")
    monkeypatch.syspath_prepend(tmp_path)
    loaded = frameworks("framework_two").Callback
    assert isinstance(Example(1), loaded)
    assert "framework_one" not in sys.modules


def test_a_callback_can_be_pickled(frameworks):
    frameworks("framework_one")
    copy = pickle.loads(pickle.dumps(Example(3)))
    assert isinstance(copy, Example)
    assert copy.on_begin() == "framework"
    assert copy.value == 3


def test_a_missing_framework_is_named_with_its_extra():
    with pytest.raises(
        ExtraMissing,
        match=r"lightning requires framework_two.*No module.*pip install 'accord\[lightning\]'",
    ):
        Example(3)


@pytest.mark.parametrize(
    ("extra", "modules"),
    [
        ("lightning", ["lightning.pytorch", "lightning", "pytorch_lightning"]),
        ("transformers", ["transformers"]),
        ("keras", ["keras", "keras.callbacks"]),
    ],
)
def test_each_framework_names_its_extra(extra, modules, monkeypatch, tmp_path):
    for name in modules:
        monkeypatch.setitem(sys.modules, name, None)
    face = __import__(f"accord.{extra}", fromlist=["RecordPredictions"])
    with pytest.raises(ExtraMissing, match=rf"pip install 'accord\[{extra}\]'"):
        face.RecordPredictions(tmp_path, np.zeros((3, 2)), network=0, classes=2)
    assert face.__all__ == ["RecordPredictions"]


@pytest.mark.parametrize(
    ("face", "extra"),
    [("torch", "train"), ("lightning", "lightning"), ("transformers", "transformers")],
)
def test_without_torch_the_extra_is_named(face, extra):
    script = f"import sys; sys.modules['torch'] = None; import accord.{face}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )
    assert "ExtraMissing" in done.stderr
    assert f"pip install 'accord[{extra}]'" in done.stderr


@pytest.mark.parametrize("face", ["torch", "lightning", "transformers", "keras"])
def test_importing_a_face_does_not_load_its_framework(face):
    script = (
        f"import sys, accord.{face}; "
        "print({'pytorch_lightning', 'lightning', 'transformers', 'keras'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout == "set()\n"


def test_importing_the_keras_face_loads_no_torch():
    script = "import sys, accord.keras; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
