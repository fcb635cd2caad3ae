"""Train, record and resume a single network of a run."""

import contextlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from accord._recorder import Recorder, record_missing
from accord.errors import PredictionError, TrainingError
from accord.training._batches import Batches
from accord.training._build_networks import build_network, loss_for, recipe_for
from accord.training._checkpoints import State, load_state, save_checkpoint, save_state
from accord.training._hardware import count_threads, torch_threads
from accord.training._loop import EpochResult, Recipe, predict_probabilities, train_loop
from accord.training._run_folder import Run, is_trainable
from accord.training._spec import NetworkSpec
from accord.training._weight_averages import AveragedNetwork, recompute_batch_norm, unwrap_average

STATE_SECONDS: Final = 30.0  # between two training states on disk; one is written at the end too


@dataclass(frozen=True)
class Progress:
    """Event for a recorded epoch or a failure of a network."""

    network: int
    epoch: float  # epochs trained; 0.5 in the middle of the first
    epochs: int  # in all
    loss: float
    networks: int = 1  # how many are trained together
    error: str | None = None  # why it failed; it is not trained further


def train_network(run: Run, network: NetworkSpec) -> Iterator[Progress]:
    with NetworkRun(run, network) as training:
        if run.device.type == "cpu":
            threads = count_threads(training.network, run.spec, run.data)
            training.enter_context(torch_threads(threads))
        try:
            for result in training.results():
                yield training.record(result)
        except TrainingError as error:
            yield training.failure(error)


class NetworkRun(contextlib.ExitStack):
    """Context manager for a network with its recorders and checkpoints."""

    def __init__(self, run: Run, spec: NetworkSpec) -> None:
        super().__init__()
        self.run, self.spec = run, spec
        self.recipe = recipe_for(run.spec, spec, run.device)
        self._schedule = self.recipe.recording_schedule(len(run.data.splits["train"]))
        self._state_saved = time.monotonic()
        names: list[tuple[str, str | None]] = [(split, None) for split in run.spec.record.splits]
        names += [("test", average) for average in run.spec.record.averages]
        metadata = {"spec": run.spec.digest(), **spec.model_dump(mode="json")}
        self._recorders: list[_SplitRecorder] = []
        with contextlib.ExitStack() as opening:
            for split, average in names:
                samples = run.data.sample_options(split)
                recorders = []
                for number in spec.numbers:
                    recorder = Recorder(
                        run.path / (split if average is None else f"{split}-{average}"),
                        network=number,
                        probabilities=run.spec.record.probabilities,
                        metadata=metadata,
                        **samples,
                    )
                    opening.callback(recorder.close, quiet=True)  # it may hold all epochs
                    recorders.append(recorder)
                self._recorders.append(
                    _SplitRecorder(run, spec, average, run.batches(split, spec), recorders)
                )
            self.enter_context(opening.pop_all())

    @property
    def samples(self) -> Batches:
        return self.run.batches("train", self.spec)

    @property
    def labels(self) -> Tensor:
        """Given labels of the training samples (sample,), or their targets (sample, class)."""
        data = self.run.data
        given = data.splits["train"].labels.astype(np.int64)
        return torch.from_numpy(given if data.targets is None else data.targets)

    @cached_property
    def network(self) -> nn.Module:
        """Network with initial weights, wrapped if averages are recorded."""
        network = build_network(self.run.spec, self.spec, self.run.data)
        averages = self.run.spec.record.averages
        return AveragedNetwork(network, averages) if averages and is_trainable(network) else network

    @cached_property
    def loss(self) -> nn.Module:
        return loss_for(self.spec, self.run.data)

    @cached_property
    def state(self) -> State | None:
        """Training state to resume from, or None if a record lacks earlier epochs."""
        state = load_state(self.run.checkpoint_folder(self.spec))
        if state is None:
            return None
        recorded = all(
            one.holds(self._schedule.before(state.epochs), last=state.epochs == self.recipe.epochs)
            for one in self._recorders
        )
        return state if recorded else None

    def results(self) -> Iterator[EpochResult]:
        if not is_trainable(self.network):
            return self._untrained_results()
        return train_loop(
            self.network,
            self.loss,
            self.samples,
            self.labels,
            recipe=self.recipe,
            seed=self.spec.seed,
            state=self.state,
        )

    def _untrained_results(self) -> Iterator[EpochResult]:
        """Yield a result for each epoch of a random predictor."""
        network: Any = self.network.to(self.samples.device)
        total = len(self._schedule)
        for index in range(total):
            network.start_epoch(index)
            progress = self.recipe.epochs * (index + 1) / total
            yield EpochResult(index=index, progress=progress, loss=0.0, lr=0.0, state=None)

    def record(self, result: EpochResult) -> Progress:
        if isinstance(self.network, AveragedNetwork) and result.state is not None:
            self.network.end_epoch(result.progress / self.recipe.epochs)
        try:
            for recorder in self._recorders:
                recorder.record(self.network, result, self.recipe)
        except PredictionError as error:
            raise TrainingError(
                f"the predictions of epoch {result.index} (progress {result.progress:g}), after "
                f"learning rate {result.lr:g}, cannot be recorded: {error} If the network "
                "diverged, a smaller rate, a warm-up, or float32 instead of bfloat16 may help."
            ) from error
        if result.state is not None:
            self._save(result.state)
        return Progress(self.spec.number, result.progress, self.recipe.epochs, result.loss)

    def failure(self, error: TrainingError) -> Progress:
        return Progress(self.spec.number, 0.0, self.recipe.epochs, 0.0, error=str(error))

    def _save(self, state: State) -> None:
        folder = self.run.checkpoint_folder(self.spec)
        if state.epochs - 1 in self.run.checkpoint_epochs:
            save_checkpoint(folder, state.epochs - 1, unwrap_average(self.network))
        # The state comes after the checkpoint: it proves that the checkpoint was written.
        is_last = state.epochs == self.recipe.epochs
        if is_last or time.monotonic() - self._state_saved > STATE_SECONDS:
            save_state(folder, state)
            self._state_saved = time.monotonic()


@dataclass(frozen=True, eq=False)
class _SplitRecorder:
    """Recorder for one split of a network or of all members of a BatchEnsemble.

    With `average`, it records the predictions of averaged weights: of a moving average (ema) at
    each epoch, of a mean over epochs (swa) once, at the end.
    """

    run: Run
    spec: NetworkSpec
    average: str | None
    samples: Batches
    recorders: list[Recorder]

    def holds(self, epochs: int, *, last: bool) -> bool:
        wanted = int(last) if self.average == "swa" else epochs
        return min(recorder.epochs for recorder in self.recorders) >= wanted

    def record(self, network: nn.Module, result: EpochResult, recipe: Recipe) -> None:
        index = result.index
        if self.average == "swa":
            if result.progress < recipe.epochs:
                return
            index = 0

        def predict() -> Iterable[object]:
            predicted = self._predict(network, recipe)
            return predicted if predicted.ndim == 3 else [predicted]

        record_missing(
            self.recorders,
            predict,
            epoch=index,
            progress=result.progress,
            loss=result.loss,
            lr=result.lr,
        )

    def _predict(self, network: nn.Module, recipe: Recipe) -> NDArray[np.float32]:
        if self.average is None or not isinstance(network, AveragedNetwork):
            return predict_probabilities(network, self.samples, bfloat16=recipe.bfloat16)
        with network.using(self.average) as averaged:
            if self.average == "swa":
                recompute_batch_norm(averaged, self.run.batches("train", self.spec))
            return predict_probabilities(averaged, self.samples, bfloat16=recipe.bfloat16)
