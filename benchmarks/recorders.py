"""Time the overhead of recording over evaluation, by framework.

python benchmarks/recorders.py [torch lightning transformers keras]

An MLP trains on 50,000 samples and is recorded on 10,000 after every epoch. Next to each row, the
same samples are evaluated in a plain loop over the batches that keeps the logits. The overhead is
the additional time of the recorder, as a share of the epoch.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")  # before Keras is imported

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset, default_collate

import accord

TRAINED, RECORDED, FEATURES, CLASSES, BATCH, EPOCHS = 50_000, 10_000, 784, 10, 128, 4
Data = tuple[Tensor, Tensor]


class Network(nn.Module):
    """Three layers; takes a tensor, or keywords as the Trainer of transformers passes them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(FEATURES, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU()
        ).append(nn.Linear(512, CLASSES))

    def forward(self, inputs: Tensor, labels: Tensor | None = None) -> Any:
        """Return logits, or a mapping with the loss if labels are given."""
        logits = self.layers(inputs)
        if labels is None:
            return logits
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Clock:
    """Times per epoch: the whole epoch, the recorder, the plain evaluation."""

    def __init__(self) -> None:
        self.recorder: list[float] = []
        self.plain: list[float] = []
        self.epochs: list[float] = []
        self._last = time.perf_counter()

    def row(self, record: Callable[[], object], plain: Callable[[], object]) -> None:
        """Time one row, and the plain evaluation, which is not part of the epoch."""
        start = time.perf_counter()
        plain()  # first, so that both find warm caches
        middle = time.perf_counter()
        record()
        end = time.perf_counter()
        self.epochs.append(end - self._last - (middle - start))
        self.plain.append(middle - start)
        self.recorder.append(end - middle)
        self._last = end

    def summary(self) -> dict[str, float]:
        """Return the medians over the epochs."""
        beyond = [one - plain for one, plain in zip(self.recorder, self.plain, strict=True)]
        epoch = statistics.median(self.epochs)
        return {
            "epoch_seconds": epoch,
            "evaluation_seconds": statistics.median(self.plain),
            "recorder_seconds": statistics.median(self.recorder),
            "overhead_milliseconds": 1000 * statistics.median(beyond),
            "overhead_percent": 100 * statistics.median(beyond) / epoch,
        }


def evaluate(network: nn.Module, loader: Any) -> Tensor:
    network.eval()
    with torch.no_grad():
        parts = []
        for batch in loader:
            inputs = batch["inputs"] if isinstance(batch, dict) else batch[0]
            parts.append(network(inputs).cpu())
    network.train()
    return torch.cat(parts)


def time_torch(path: Path, train: Data, test: Data) -> Clock:
    from accord.torch import record_epoch

    network, held = Network(), DataLoader(TensorDataset(*test), BATCH)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    with accord.Recorder(path, network=0, samples=RECORDED, classes=CLASSES) as recorder:
        clock = Clock()
        for _ in range(EPOCHS):
            for inputs, labels in DataLoader(TensorDataset(*train), BATCH, shuffle=True):
                optimizer.zero_grad()
                network(inputs, labels)["loss"].backward()
                optimizer.step()
            clock.row(
                lambda: record_epoch(recorder, network, held),
                lambda: evaluate(network, held),
            )
    return clock


def time_lightning(path: Path, train: Data, test: Data) -> Clock:
    import pytorch_lightning as lightning

    from accord.lightning import RecordPredictions

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = Network()

        def forward(self, inputs: Tensor) -> Any:
            return self.network(inputs)

        def training_step(self, batch: list[Tensor], _: int) -> Any:
            return self.network(*batch)["loss"]

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    held, clock = DataLoader(TensorDataset(*test), BATCH), Clock()

    class Timed(RecordPredictions):
        def _after(
            self, trainer: Any, module: Any, previous: float, progress: float, *, last: bool
        ) -> None:
            if self._recorder.is_due(previous, progress, last=last):
                record = super()._after
                clock.row(
                    lambda: record(trainer, module, previous, progress, last=last),
                    lambda: evaluate(module, held),
                )

    lightning.Trainer(
        max_epochs=EPOCHS,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        callbacks=[Timed(path, held, network=0, classes=CLASSES)],
    ).fit(Module(), DataLoader(TensorDataset(*train), BATCH, shuffle=True))
    return clock


def time_transformers(path: Path, train: Data, test: Data) -> Clock:
    from transformers import Trainer, TrainingArguments

    from accord.transformers import RecordPredictions

    def items(data: Data) -> Any:
        return [{"inputs": one, "labels": label} for one, label in zip(*data, strict=True)]

    clock, test_items = Clock(), items(test)
    held: DataLoader[Any] = DataLoader(test_items, BATCH, collate_fn=default_collate)

    class Timed(RecordPredictions):
        def _record(self, *args: Any, **given: Any) -> None:
            record = super()._record
            clock.row(lambda: record(*args, **given), lambda: evaluate(given["model"], held))

    arguments = TrainingArguments(
        str(path.parent / "saved"),
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=BATCH,
        per_device_eval_batch_size=BATCH,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    record = Timed(path, test_items, network=0, classes=CLASSES, collate=default_collate)
    network: Any = Network()
    Trainer(network, arguments, train_dataset=items(train), callbacks=[record]).train()
    return clock


def time_keras(path: Path, train: Data, test: Data) -> Clock:
    import keras

    from accord.keras import RecordPredictions

    network = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(CLASSES),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    network.compile(optimizer=keras.optimizers.SGD(0.01), loss=loss)
    clock, inputs = Clock(), test[0].numpy()

    def plain() -> None:
        for start in range(0, len(inputs), BATCH):
            network.predict_on_batch(inputs[start : start + BATCH])

    class Timed(RecordPredictions):
        def _record(self, progress: float, logs: Any) -> None:
            record = super()._record
            clock.row(lambda: record(progress, logs), plain)

    record = Timed(path, inputs, network=0, classes=CLASSES, batch=BATCH)
    network.fit(
        train[0].numpy(),
        train[1].numpy(),
        batch_size=BATCH,
        epochs=EPOCHS,
        verbose=0,
        callbacks=[record],
    )
    return clock


CLOCKS = {
    "torch": time_torch,
    "lightning": time_lightning,
    "transformers": time_transformers,
    "keras": time_keras,
}


def draw(samples: int, seed: int) -> Data:
    inputs = torch.randn(samples, FEATURES, generator=torch.Generator().manual_seed(seed))
    return inputs, inputs[:, :CLASSES].argmax(1)


def main() -> None:
    train, test = draw(TRAINED, 0), draw(RECORDED, 1)
    results = {}
    for name in sys.argv[1:] or CLOCKS:
        with tempfile.TemporaryDirectory(dir=".") as scratch:
            clock = CLOCKS[name](Path(scratch, "record"), train, test)
            assert accord.open(Path(scratch, "record")).epochs == EPOCHS
        results[name] = clock.summary()
        print(name, results[name], file=sys.stderr)
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
