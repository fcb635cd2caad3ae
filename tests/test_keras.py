"""The Keras face, against a stub of Keras; clients/test_keras.py uses the real one."""

import sys
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest

import accord
from accord.errors import ChoiceError, RecordError


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
        stop_training = False

        def predict_on_batch(self, inputs):
            return inputs

    def build(path, inputs, **options):
        callback = RecordPredictions(path, inputs, **{"network": 0, "classes": 2, **options})
        callback.model = Network()
        return callback

    return build


SCORES = np.array([[2.0, 1.0], [0.0, 1.0], [5.0, 9.0]])


def test_fractions_of_an_epoch_are_recorded(keras, tmp_path):
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


def test_a_gap_and_a_second_start_are_refused(keras, tmp_path):
    callback = keras(tmp_path, SCORES)
    callback.on_train_begin()
    with pytest.raises(ChoiceError, match="attached twice"):
        callback.on_train_begin()
    with pytest.raises(RecordError, match="row at progress 1 is missing"):
        callback.on_epoch_begin(2)
    keras(tmp_path, SCORES).on_train_begin()  # the first was closed


def train(callback, epochs, *, stop_after=None, before=()):
    """Run the hooks of `fit`; a callback listed before ours may stop training early."""
    callback.params = {"steps": 1, "epochs": epochs}
    callback.on_train_begin()
    for epoch in range(epochs):
        callback.on_epoch_begin(epoch)
        callback.on_train_batch_end(0)
        if "stop" in before:
            callback.model.stop_training = epoch + 1 == stop_after
        callback.on_epoch_end(epoch)
        if epoch + 1 == stop_after:
            break
    if "stop" in before:  # it restores the best weights first
        callback.model.predict_on_batch = lambda inputs: -inputs
    callback.on_train_end()


def test_the_last_epoch_is_recorded_between_multiples(keras, tmp_path):
    train(keras(tmp_path, SCORES, every=2), 5)
    assert accord.open(tmp_path).progress == (2, 4, 5)


@pytest.mark.parametrize("before", [(), ("stop",)])
def test_the_last_epoch_is_recorded_after_early_stopping(keras, tmp_path, before):
    train(keras(tmp_path, SCORES, every=2), 9, stop_after=3, before=before)
    record = accord.open(tmp_path)
    assert record.progress == (2, 3)
    assert np.asarray(record.labels)[0].tolist() == [[0, 1, 1]] * 2
