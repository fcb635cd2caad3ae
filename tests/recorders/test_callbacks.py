"""A recorder becomes a callback of its framework when it is built, and says what is missing."""

import pickle
import subprocess
import sys
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest

import accord
from accord._recorders.callback_recorder import FrameworkCallback
from accord.errors import ChoiceError, ExtraMissing, RecordError


class Hooks:
    """A framework's own class of callbacks."""

    def __init__(self):
        self.built = True

    def on_end(self):
        return "framework"

    def on_begin(self):
        return "framework"


@pytest.fixture
def frameworks(monkeypatch):
    """Two frameworks, neither loaded nor to be found, until a test puts one there."""

    def put(name):
        module = ModuleType(name)
        module.Callback = type("Callback", (Hooks,), {})
        monkeypatch.setitem(sys.modules, name, module)
        return module

    return put


class Mine(FrameworkCallback):
    modules: ClassVar = ("framework_one", "framework_two")
    base: ClassVar = "Callback"
    extra: ClassVar = "lightning"

    def __init__(self, value):
        super().__init__()
        self.value = value

    def on_end(self):
        return "mine"


def test_it_is_both_a_recorder_and_a_callback(frameworks):
    base = frameworks("framework_two").Callback
    one = Mine(3)
    assert isinstance(one, Mine)
    assert isinstance(one, base)
    assert type(one).__name__ == "Mine"
    assert (one.value, one.built) == (3, True)
    assert (one.on_begin(), one.on_end()) == ("framework", "mine")
    assert type(Mine(4)) is type(one)
    assert type(type(one)(5)) is type(one)


def test_of_two_names_the_first_that_is_there_is_taken(frameworks):
    second = frameworks("framework_two").Callback
    assert isinstance(Mine(1), second)
    first = frameworks("framework_one").Callback
    assert isinstance(Mine(1), first)
    assert not isinstance(Mine(1), second)


def test_of_two_names_the_one_that_a_script_has_loaded_is_taken(frameworks, monkeypatch, tmp_path):
    (tmp_path / "framework_one.py").write_text("class Callback: pass")
    monkeypatch.syspath_prepend(tmp_path)
    loaded = frameworks("framework_two").Callback
    assert isinstance(Mine(1), loaded)
    assert "framework_one" not in sys.modules


def test_it_can_be_pickled(frameworks):
    frameworks("framework_one")
    copy = pickle.loads(pickle.dumps(Mine(3)))
    assert isinstance(copy, Mine)
    assert copy.on_begin() == "framework"
    assert copy.value == 3


def test_a_framework_that_is_missing_is_named_with_its_extra():
    with pytest.raises(
        ExtraMissing,
        match=r"lightning requires framework_two.*No module.*pip install 'accord\[lightning\]'",
    ):
        Mine(3)


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


# The recorder of Keras needs nothing of torch, and of Keras no more than this.


@pytest.fixture
def keras(monkeypatch):
    class Callback:
        params: ClassVar = {"steps": 2}

    package, callbacks = ModuleType("keras"), ModuleType("keras.callbacks")
    package.config = type("config", (), {"backend": staticmethod(lambda: "numpy")})
    callbacks.Callback = Callback
    monkeypatch.setitem(sys.modules, "keras", package)
    monkeypatch.setitem(sys.modules, "keras.callbacks", callbacks)
    from accord.keras import RecordPredictions

    class Network:
        layers: ClassVar = []

        def predict_on_batch(self, inputs):
            return inputs

    def build(path, inputs, **options):
        callback = RecordPredictions(path, inputs, **{"network": 0, "classes": 2, **options})
        callback.model = Network()
        return callback

    return build


SCORES = np.array([[2.0, 1.0], [0.0, 1.0], [5.0, 9.0]])


def test_the_recorder_of_keras_follows_a_training(keras, tmp_path):
    callback = keras(tmp_path, SCORES, every=0.5, batch=2)
    callback.on_train_begin()
    for epoch in range(2):
        callback.on_epoch_begin(epoch)
        for batch in range(2):
            callback.on_train_batch_end(batch, {"loss": np.float32(0.5)})
        callback.on_epoch_end(epoch, {"loss": 0.25})
    callback.on_train_end()
    record = accord.open(tmp_path)
    assert record.progress == (0.5, 1.0, 1.5, 2.0)
    assert np.asarray(record.labels)[0].tolist() == [[0, 1, 1]] * 4
    assert record.networks_info[0].metrics[0] == {"loss": 0.5}


def test_the_recorder_of_keras_refuses_a_gap_and_a_second_beginning(keras, tmp_path):
    callback = keras(tmp_path, SCORES)
    callback.on_train_begin()
    with pytest.raises(ChoiceError, match="attached twice"):
        callback.on_train_begin()
    with pytest.raises(RecordError, match="row at progress 1 is missing"):
        callback.on_epoch_begin(2)
    keras(tmp_path, SCORES).on_train_begin()  # the first was let go
