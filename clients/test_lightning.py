"""Record with the real Lightning: epochs, fractions, resumed and distributed training."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import accord
from accord.errors import ChoiceError, PredictionError, RecordBusy, RecordError
from accord.lightning import RecordPredictions
from accord.torch import with_ids

lightning = pytest.importorskip("pytorch_lightning", reason="pip install 'accord[lightning]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's own, of loaders and of torch

SAMPLES, CLASSES, STEPS = 30, 3, 5


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.network = nn.Sequential(
            nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, CLASSES)
        )

    def forward(self, inputs):
        return self.network(inputs)

    def training_step(self, batch, number):
        return nn.functional.cross_entropy(self(batch[0]), batch[1])

    def validation_step(self, batch, number):
        self.log("accuracy", (self(batch[0]).argmax(1) == batch[1]).float().mean())

    def predict_step(self, batch, number):
        return self(batch[0]).argmax(1)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.2, momentum=0.9)


class Witness(lightning.Callback):
    """What the network predicts at the end of each epoch, computed directly."""

    def __init__(self, inputs):
        self.inputs, self.labels = inputs, []

    def on_train_epoch_end(self, trainer, pl_module):
        pl_module.eval()
        with torch.no_grad():
            self.labels.append(pl_module(self.inputs).argmax(1).tolist())
        pl_module.train()


def draw(seed):
    inputs = torch.randn(SAMPLES, 4, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(inputs, inputs[:, :CLASSES].argmax(1))


TRAIN, TEST = draw(1), draw(2)
HELD = DataLoader(TEST, batch_size=8)


def record_to(path, loader=HELD, **options):
    return RecordPredictions(path, loader, **{"network": 0, "classes": CLASSES, **options})


def fit(callbacks, *, epochs=3, module=None, checkpoint=None, train=None, validate=None, **options):
    trainer = lightning.Trainer(
        **{
            "max_epochs": epochs,
            "callbacks": callbacks,
            "accelerator": "cpu",
            "logger": False,
            "enable_checkpointing": any(
                isinstance(one, lightning.callbacks.ModelCheckpoint) for one in callbacks
            ),
            "enable_progress_bar": False,
            "enable_model_summary": False,
            **options,
        }
    )
    module = Classifier() if module is None else module
    if train is None:
        train = DataLoader(TRAIN, batch_size=6, shuffle=True)
    trainer.fit(module, train, validate, ckpt_path=checkpoint, weights_only=False)
    return module


def rows(path):
    return np.asarray(accord.open(path).labels)[0].tolist()


def test_every_epoch_is_recorded_as_the_network_was(tmp_path):
    witness = Witness(TEST.tensors[0])
    truth = TEST.tensors[1]
    # Validation begins with a sanity check, before any training.
    fit([record_to(tmp_path, truth=truth, split="held"), witness], validate=HELD)
    record = accord.open(tmp_path)
    assert record.progress == (1.0, 2.0, 3.0)
    assert rows(tmp_path) == witness.labels
    assert record.truth.tolist() == truth.tolist()
    assert [one["step"] for one in record.networks_info[0].metrics] == [STEPS, 2 * STEPS, 3 * STEPS]


def test_parts_and_multiples_of_an_epoch_are_recorded(tmp_path):
    witness = Witness(TEST.tensors[0])
    fit(
        [
            record_to(tmp_path / "parts", every=0.5),
            record_to(tmp_path / "multiples", every=2),
            witness,
        ],
        epochs=4,
    )
    assert accord.open(tmp_path / "parts").progress == (0.6, 1, 1.6, 2, 2.6, 3, 3.6, 4)
    assert rows(tmp_path / "parts")[1::2] == witness.labels
    assert accord.open(tmp_path / "multiples").progress == (2, 4)
    assert rows(tmp_path / "multiples") == witness.labels[1::2]


@pytest.mark.parametrize("validate", [None, HELD])
def test_the_last_epoch_is_recorded_between_multiples(tmp_path, validate):
    witness, path = Witness(TEST.tensors[0]), tmp_path / "record"
    fit([record_to(path, every=2), witness, saving(tmp_path)], epochs=5, validate=validate)
    assert accord.open(path).progress == (2, 4, 5)
    assert rows(path) == [witness.labels[epoch] for epoch in (1, 3, 4)]
    last = tmp_path / f"epoch=4-step={5 * STEPS}.ckpt"
    fit([record_to(path, every=2)], epochs=8, checkpoint=last, validate=validate)
    assert accord.open(path).progress == (2, 4, 5, 6, 8)


def test_the_last_epoch_is_recorded_after_early_stopping(tmp_path):
    class Stop(lightning.Callback):
        def on_train_epoch_end(self, trainer, pl_module):
            trainer.should_stop = trainer.current_epoch == 2

    witness = Witness(TEST.tensors[0])
    fit([record_to(tmp_path, every=2), witness, Stop()], epochs=9)
    assert accord.open(tmp_path).progress == (2, 3)
    assert rows(tmp_path) == witness.labels[1:]


def test_more_rows_than_steps_are_refused(tmp_path):
    with pytest.raises(ChoiceError, match=r"every=0\.1 requires more rows than training has steps"):
        fit([record_to(tmp_path, every=0.1)])


def test_recording_does_not_change_what_is_trained(tmp_path):
    shuffled = DataLoader(with_ids(TEST), batch_size=8, shuffle=True)
    found = fit([record_to(tmp_path, shuffled, every=0.2)]).state_dict()
    for name, value in fit([]).state_dict().items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=0)


def test_predict_step_or_any_function_will_do(tmp_path):
    witness = Witness(TEST.tensors[0])

    def forward(module, batch):
        return module.predict_step(batch, 0)

    fit([record_to(tmp_path, forward=forward), witness])
    assert rows(tmp_path) == witness.labels


def test_the_trainers_precision_is_used(tmp_path):
    seen = []

    def forward(module, batch):
        logits = module(batch[0])
        seen.append((batch[0].dtype, logits.dtype))
        return logits

    for precision in ("bf16-mixed", "bf16-true"):
        path = tmp_path / precision
        fit([record_to(path, forward=forward)], epochs=1, precision=precision)
        assert accord.open(path).epochs == 1
    half = torch.bfloat16
    assert set(seen[: len(HELD)]) == {(torch.float32, half)}
    assert set(seen[len(HELD) :]) == {(half, half)}


def test_a_part_of_an_epoch_at_the_end_of_training_is_no_epoch(tmp_path):
    fit([record_to(tmp_path)], epochs=-1, max_steps=2 * STEPS + 2)
    assert accord.open(tmp_path).progress == (1.0, 2.0)


def test_a_fast_dev_run_records_nothing(tmp_path):
    fit([record_to(tmp_path / "record")], fast_dev_run=True)
    assert not (tmp_path / "record").exists()


class Stream(IterableDataset):
    def __iter__(self):
        yield from TRAIN


def test_epochs_of_unknown_length_are_recorded_whole(tmp_path):
    witness = Witness(TEST.tensors[0])
    fit([record_to(tmp_path), witness], epochs=2, train=DataLoader(Stream(), batch_size=6))
    assert rows(tmp_path) == witness.labels
    with pytest.raises(ChoiceError, match=r"every=0\.5 needs epochs of known length"):
        fit([record_to(tmp_path / "parts", every=0.5)], train=DataLoader(Stream(), batch_size=6))


def test_an_epoch_that_skips_its_rest_is_recorded(tmp_path):
    class Skips(Classifier):
        def on_train_batch_start(self, batch, number):
            return -1 if number == 2 else None

    witness = Witness(TEST.tensors[0])
    fit([record_to(tmp_path), witness], module=Skips())
    assert accord.open(tmp_path).progress == (1, 2, 3)
    assert rows(tmp_path) == witness.labels


# Resuming from a checkpoint


def saving(folder, **options):
    return lightning.callbacks.ModelCheckpoint(
        **{"dirpath": folder, "filename": "{epoch}-{step}", "save_top_k": -1, **options}
    )


@pytest.mark.parametrize("validate", [None, HELD])
def test_resumed_training_has_every_row_once(tmp_path, validate):
    path, saved = tmp_path / "record", tmp_path / "saved"
    fit([record_to(path), saving(saved)], epochs=2, validate=validate)
    before = rows(path)
    witness = Witness(TEST.tensors[0])
    last = saved / f"epoch=1-step={2 * STEPS}.ckpt"
    fit([record_to(path), witness], epochs=4, checkpoint=last, validate=validate)
    assert accord.open(path).progress == (1, 2, 3, 4)
    assert rows(path) == before + witness.labels[-2:]


def test_what_is_trained_twice_is_recorded_once(tmp_path, caplog):
    path, saved = tmp_path / "record", tmp_path / "saved"
    fit([record_to(path), saving(saved)], epochs=3)
    before = rows(path)
    first = saved / f"epoch=0-step={STEPS}.ckpt"
    fit([record_to(path)], epochs=4, checkpoint=first)
    assert rows(path)[:3] == before
    assert accord.open(path).epochs == 4
    assert "already holds" not in caplog.text
    fit([record_to(path)], epochs=5)
    assert "network 0 already holds 4 epochs; training starts from scratch" in caplog.text
    assert accord.open(path).epochs == 5


def test_training_resumed_within_an_epoch_has_every_row_once(tmp_path):
    path, saved = tmp_path / "record", tmp_path / "saved"
    fit([record_to(path, every=0.2), saving(saved, every_n_train_steps=7)], epochs=2)
    middle = saved / "epoch=1-step=7.ckpt"
    fit([record_to(path, every=0.2)], epochs=3, checkpoint=middle)
    assert accord.open(path).progress == tuple(step / STEPS for step in range(1, 3 * STEPS + 1))
    other = tmp_path / "other"
    with pytest.raises(
        RecordError, match=r"holds 0 epochs.*from progress 1.*row at progress 0\.2 is missing"
    ):
        fit([record_to(other, every=0.2)], epochs=3, checkpoint=middle)


def test_a_checkpoint_ahead_of_the_record_is_refused(tmp_path):
    fit([saving(tmp_path / "saved")], epochs=2)
    last = tmp_path / f"saved/epoch=1-step={2 * STEPS}.ckpt"
    with pytest.raises(
        RecordError,
        match=r"holds 0 .*from progress 2: the row at progress 1 is missing.*checkpoint before",
    ):
        fit([record_to(tmp_path / "record")], epochs=4, checkpoint=last)


# Errors


def test_attaching_it_twice_is_refused(tmp_path):
    callback = record_to(tmp_path / "record")
    with pytest.raises(ChoiceError, match="for network 0 is attached 2 times; attach it once"):
        fit([callback, callback])
    with pytest.raises(ChoiceError, match="for network 0 is attached 2 times; attach it once"):
        fit([callback, record_to(tmp_path / "record")])
    fit([callback, record_to(tmp_path / "record", network=1), record_to(tmp_path / "train")])
    assert accord.open(tmp_path / "record").networks == 2


def test_the_end_of_training_and_close_release_the_record(tmp_path):
    callback = record_to(tmp_path)
    fit([callback], epochs=1)
    with accord.Recorder(tmp_path, network=0, samples=SAMPLES, classes=CLASSES) as other:
        assert other.epochs == 1
    callback._recorder.open()
    callback.close()
    accord.Recorder(tmp_path, network=0, samples=SAMPLES, classes=CLASSES).close()


def test_two_trainings_of_one_network_are_refused(tmp_path):
    size = {"samples": SAMPLES, "classes": CLASSES}
    with (
        accord.Recorder(tmp_path, network=0, **size),
        pytest.raises(RecordBusy, match=r"another recorder holds this network.*callback\.close"),
    ):
        fit([record_to(tmp_path)])
    fit([record_to(tmp_path)], epochs=1)
    assert accord.open(tmp_path).epochs == 1


def test_a_network_that_diverges_is_named_and_its_epochs_are_kept(tmp_path):
    class Diverges(Classifier):
        def forward(self, inputs):
            return super().forward(inputs) * (float("nan") if self.current_epoch else 1)

    with pytest.raises(
        PredictionError, match=r"network 0, epoch 1 \(progress 2\): .*NaN.*30 of 30 samples"
    ):
        fit([record_to(tmp_path)], module=Diverges())
    assert accord.open(tmp_path).epochs == 1
    fit([record_to(tmp_path)], epochs=2)  # the record was closed
    assert accord.open(tmp_path).epochs == 2


def test_a_loader_that_shuffles_without_ids_is_refused(tmp_path):
    with pytest.raises(ChoiceError, match=r"any order \(RandomSampler\)"):
        fit([record_to(tmp_path, DataLoader(TEST, batch_size=8, shuffle=True))])


def test_wrong_sample_info_is_refused_before_training(tmp_path):
    with pytest.raises(PredictionError, match=r"truth must have shape \(30,\)"):
        record_to(tmp_path, truth=[0, 1])
    with pytest.raises(TypeError, match="unexpected argument 'turth'; it passes on"):
        record_to(tmp_path, turth=TEST.tensors[1])
    with pytest.raises(ChoiceError, match=r"every must be a whole number.*got 0\.3"):
        record_to(tmp_path, every=0.3)
    with pytest.raises(ChoiceError, match=r"Stream has no length: .*samples="):
        record_to(tmp_path, DataLoader(Stream(), batch_size=6))


def test_it_is_a_callback_of_lightning(tmp_path):
    callback = record_to(tmp_path)
    assert isinstance(callback, lightning.Callback)
    assert isinstance(callback, RecordPredictions)


# Two processes

SCRIPT = """
import sys, torch
sys.path.insert(0, sys.argv[1])
import warnings; warnings.simplefilter("ignore")
import test_lightning as here

witness = here.Witness(here.TEST.tensors[0])
rest = here.TEST.tensors[0][:29], here.TEST.tensors[1][:29]  # not divisible by two
held = here.DataLoader(here.TensorDataset(*rest), batch_size=4)
module = here.fit(
    [
        here.record_to(sys.argv[2] + "/record", held, truth=rest[1]),
        here.record_to(sys.argv[2] + "/tables", held, probabilities=True, every=2),
        witness,
    ],
    epochs=2, strategy="ddp", devices=2,
)
if module.trainer.is_global_zero:
    torch.save(witness.labels, sys.argv[2] + "/expected.pt")
"""


def test_two_processes_write_one_row_together(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py", Path(__file__).parent, tmp_path],
        env={**os.environ, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    expected = [labels[:29] for labels in torch.load(tmp_path / "expected.pt")]
    assert rows(tmp_path / "record") == expected
    assert rows(tmp_path / "tables") == expected[1:]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_steps": 2}, r"ended at progress 0\.4, and the first row is due at 1\. .*every=0\.1"),
        ({"epochs": 0}, r"training recorded nothing\. It ended before its first epoch"),
        ({"fast_dev_run": True}, "a fast_dev_run is not recorded"),
    ],
)
def test_a_training_without_a_row_is_reported(tmp_path, caplog, options, words):
    fit([record_to(tmp_path)], **options)
    assert re.search(words, caplog.text)


def test_no_validation_is_needed(tmp_path, caplog):
    fit([record_to(tmp_path)], validate=HELD, limit_val_batches=0)
    assert accord.open(tmp_path).epochs == 3
    assert "accord" not in caplog.text
