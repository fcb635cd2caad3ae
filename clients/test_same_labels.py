"""One set of weights, evaluated through every recorder of a torch network, gives one row."""

import os

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import accord
from accord.keras import RecordPredictions as KerasRecord
from accord.lightning import RecordPredictions as LightningRecord
from accord.torch import record_epoch, with_ids
from accord.transformers import RecordPredictions as TrainerRecord

os.environ.setdefault("KERAS_BACKEND", "torch")  # before Keras is imported
keras = pytest.importorskip("keras", reason="pip install 'accord[keras]'")
lightning = pytest.importorskip("pytorch_lightning", reason="pip install 'accord[lightning]'")
transformers = pytest.importorskip("transformers", reason="pip install 'accord[transformers]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the frameworks

SAMPLES, CLASSES, BATCH = 2000, 7, 64
INPUTS = torch.randn(SAMPLES, 20, generator=torch.Generator().manual_seed(0))
LABELS = INPUTS[:, :CLASSES].argmax(1)
SIZE = {"network": 0, "classes": CLASSES}


class Network(nn.Module):
    """Takes a tensor, as Lightning and Keras give it, or keywords, as the Trainer does."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(
            nn.Linear(20, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, CLASSES)
        )

    def forward(self, inputs, labels=None):
        logits = self.layers(inputs)
        if labels is None:
            return logits
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


@pytest.fixture(scope="module")
def network():
    network = Network()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(20):
        optimizer.zero_grad()
        network(INPUTS, LABELS)["loss"].backward()
        optimizer.step()
    return network


def by_record_epoch(path, network):
    with accord.Recorder(path, **SIZE, samples=SAMPLES) as recorder:
        record_epoch(recorder, network, DataLoader(TensorDataset(INPUTS, LABELS), BATCH))


def by_record_epoch_shuffled(path, network):
    loader = DataLoader(with_ids(TensorDataset(INPUTS, LABELS)), BATCH, shuffle=True)
    with accord.Recorder(path, **SIZE, samples=SAMPLES) as recorder:
        record_epoch(recorder, network, loader)


class Still(lightning.LightningModule):
    """Trains at a rate of 0: the weights stay."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, inputs):
        return self.network(inputs)

    def training_step(self, batch, number):
        return self.network(*batch)["loss"]

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.0)


def by_lightning(path, network):
    loader = DataLoader(TensorDataset(INPUTS, LABELS), BATCH)
    lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        callbacks=[LightningRecord(path, loader, **SIZE)],
    ).fit(Still(network), loader)


def by_transformers(path, network):
    pairs = zip(INPUTS, LABELS, strict=True)
    dataset = [{"inputs": one, "labels": label} for one, label in pairs]
    arguments = transformers.TrainingArguments(
        str(path.parent / "saved"),
        num_train_epochs=1,
        learning_rate=0.0,
        per_device_train_batch_size=BATCH,
        per_device_eval_batch_size=BATCH,
        use_cpu=True,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    transformers.Trainer(
        network,
        arguments,
        train_dataset=dataset,
        callbacks=[TrainerRecord(path, dataset, **SIZE)],
    ).train()


def by_keras(path, network):
    # Keras calls the same torch module; its own layers would be other functions.
    wrapped = keras.Sequential([keras.Input((20,)), keras.layers.TorchModuleWrapper(network)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    wrapped.compile(optimizer=keras.optimizers.SGD(0.0), loss=loss)
    callback = KerasRecord(path, INPUTS.numpy(), **SIZE, batch=BATCH)
    wrapped.fit(
        INPUTS.numpy(), LABELS.numpy(), epochs=1, batch_size=BATCH, verbose=0, callbacks=[callback]
    )


@pytest.mark.parametrize(
    "record", [by_record_epoch_shuffled, by_lightning, by_transformers, by_keras]
)
def test_every_recorder_writes_the_same_bytes(record, network, tmp_path):
    by_record_epoch(tmp_path / "expected", network)
    record(tmp_path / "found", network)
    found, expected = (
        np.asarray(accord.open(tmp_path / name).labels) for name in ("found", "expected")
    )
    assert found.tobytes() == expected.tobytes()
    assert len(np.unique(found)) == CLASSES
