"""Train several networks in parallel on one GPU with CUDA graphs.

Launching kernels one by one keeps a GPU waiting for Python. Here a whole step (batch,
augmentation, forward, backward, optimizer) is captured once per network and replayed on a stream
per network, so that the small kernels of one network fill the gaps of another. Long runs are
compiled first, once for all networks of one architecture. Order, augmentation and learning rates
are those of the loop in `_loop`, and so is the result.
"""

import contextlib
import logging
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

from accord._recorders.schedule import RecordedEpochs
from accord.errors import ChoiceError, NotCapturable, TrainingError
from accord.training._batches import Batches, ImageBatches, TableBatches
from accord.training._checkpoints import State, capture_state
from accord.training._loop import (
    EpochResult,
    Recipe,
    after_step,
    autocast,
    build_optimizer,
    divergence_error,
    draw_for,
    explain_out_of_memory,
    learning_rate_at,
)
from accord.training._randomness import Draws, IsolatedRandomState, derive_seed

WARM_UP: Final = 3  # steps before a capture, in which cuDNN and cuBLAS choose algorithms
WORTH_COMPILING: Final = 1500  # steps of all networks, per layer, from which compiling pays
COMPILE: Final = "ACCORD_COMPILE"  # the environment variable: auto, always or never

_logger = logging.getLogger(__name__)

Compute = Callable[[nn.Module, nn.Module, Batches, Draws, Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class LockstepNetwork:
    network: nn.Module
    loss: nn.Module
    recipe: Recipe
    seed: int
    state: State | None = None


def lockstep_obstacle(samples: object) -> str | None:
    """Find the reason that prevents lockstep training, if there is one."""
    if not torch.cuda.is_available():
        return "no CUDA device is available"
    if isinstance(samples, TableBatches) or (
        isinstance(samples, ImageBatches) and samples.in_memory
    ):
        return None
    return "the samples are not images or tables in memory"


def train_lockstep(
    networks: Sequence[LockstepNetwork], samples: Batches, labels: Tensor
) -> Iterator[tuple[int, EpochResult | TrainingError]]:
    """Train networks in lockstep and yield results or failures with the position of the network.

    All networks train for the same epochs in batches of the same size. Those that resume from a
    later epoch join when the others have reached it.
    """
    labels = labels.to(samples.device)
    recipe = networks[0].recipe
    steps = math.ceil(len(samples) / recipe.batch)
    compute = _choose_compute(networks, steps)
    randomness = IsolatedRandomState(derive_seed(networks[0].seed, 0, 2), samples.device)
    with explain_out_of_memory(), _cudnn_benchmark(), randomness.active():
        captured = {
            position: _CapturedNetwork(spec, samples, labels, compute)
            for position, spec in enumerate(networks)
        }
    schedule = recipe.recording_schedule(len(samples))
    for epoch in range(recipe.epochs):
        running = {position: one for position, one in captured.items() if epoch >= one.begin}
        randomness = IsolatedRandomState(derive_seed(networks[0].seed, epoch, 1), samples.device)
        for one in running.values():
            one.start_epoch(epoch)
        done = 0
        for step_end in schedule.steps_in(epoch) or [steps]:
            with randomness.active():
                _replay(list(running.values()), range(done, step_end))
            done = step_end
            for position, one in list(running.items()):
                reached = one.result(epoch, step_end, schedule)
                if isinstance(reached, TrainingError):
                    del captured[position], running[position]
                if reached is not None:
                    yield position, reached


def _replay(captured: Sequence["_CapturedNetwork"], steps: range) -> None:
    for one in captured:
        one.start()
    for step in steps:
        for one in captured:
            one.replay(step)
    torch.cuda.synchronize()


def _choose_compute(networks: Sequence[LockstepNetwork], steps: int) -> Compute:
    """Choose the loss function of a step and compile it for long runs."""
    left = [spec.recipe.epochs - _begin(spec) for spec in networks]
    setting = os.environ.get(COMPILE, "auto")
    if setting not in ("auto", "always", "never"):
        raise ChoiceError(f"{COMPILE} must be auto, always or never; got {setting!r}")
    network = networks[0].network
    passes = sum(left) * steps * getattr(network, "members", 1)
    pays = passes >= WORTH_COMPILING * _count_layers(network)
    return _Compiled() if setting == "always" or (setting == "auto" and pays) else compute_loss


def _count_layers(network: nn.Module) -> int:
    return sum(1 for module in network.modules() if any(True for _ in module.parameters(False)))


def _begin(spec: LockstepNetwork) -> int:
    return 0 if spec.state is None else spec.state.epochs


def compute_loss(
    network: nn.Module,
    loss: nn.Module,
    samples: Batches,
    draws: Draws,
    labels: Tensor,
    chosen: Tensor,
) -> Tensor:
    logits = network(samples.take(chosen, draws))
    value: Tensor = loss(logits.float(), labels[chosen], chosen)
    return value


class _Compiled:
    """Wrapper that compiles `compute_loss` and falls back to eager mode on failure.

    Networks of one architecture share their kernels, which take the parameters as arguments.
    """

    def __init__(self) -> None:
        self._compiled: Compute | None = torch.compile(compute_loss, dynamic=False)

    def __call__(self, *arguments: Any) -> Tensor:
        from torch._dynamo.exc import TorchDynamoException  # takes a second to import

        if self._compiled is not None:
            try:
                return self._compiled(*arguments)
            except TorchDynamoException as error:
                _logger.warning("training continues without compilation: %s", _first_line(error))
                self._compiled = None
        return compute_loss(*arguments)


@contextlib.contextmanager
def _cudnn_benchmark() -> Iterator[None]:
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


class _CapturedNetwork:
    """Network with its CUDA stream, graphs and static buffers."""

    def __init__(
        self, spec: LockstepNetwork, samples: Batches, labels: Tensor, compute: Compute
    ) -> None:
        device, recipe = samples.device, spec.recipe
        self._spec, self._samples, self._labels = spec, samples, labels
        self.steps = math.ceil(len(samples) / recipe.batch)
        self.begin = _begin(spec)
        self._network = spec.network.to(device)
        self._loss = spec.loss.to(device)
        self._compute = compute
        self._optimizer = build_optimizer(self._network, recipe.optimizer, fused=True)
        for group in self._optimizer.param_groups:
            group["lr"] = torch.tensor(group["lr"], device=device)
        self._draws = Draws(*(value.to(device) for value in self._draw(0)))
        self._rates = torch.zeros(self.steps, device=device)
        self._step = torch.zeros(1, dtype=torch.long, device=device)
        self._total = torch.zeros((), device=device)
        self._counted = 0  # samples in that total
        self._stream = torch.cuda.Stream()
        self._graphs = self._capture()

    def _draw(self, epoch: int) -> Draws:
        spec = self._spec
        return draw_for(spec.recipe, len(self._samples), seed=spec.seed, epoch=epoch)

    def _capture(self) -> dict[int, torch.cuda.CUDAGraph]:
        """Capture a training step for each batch size."""
        before = capture_state(0, self._network, self._optimizer, self._loss)
        kept = {name: value.clone() for name, value in before.weights.items()}
        loss_state = {name: value.clone() for name, value in before.loss.items()}
        whole = min(self._spec.recipe.batch, len(self._samples))
        last = len(self._samples) - (self.steps - 1) * self._spec.recipe.batch
        self._network.train()
        graphs = {}
        self._stream.wait_stream(torch.cuda.current_stream())
        with _explain_capture_error():
            for size in dict.fromkeys([whole, last]):
                # One step per epoch is not worth compiling.
                compute = self._compute if size == whole else compute_loss
                graphs[size] = self._capture_step(size, compute)
        torch.cuda.synchronize()
        self._rewind(kept, loss_state)
        return graphs

    def _capture_step(self, size: int, compute: Compute) -> torch.cuda.CUDAGraph:
        with torch.cuda.stream(self._stream):
            for _ in range(WARM_UP):
                self._step.zero_()
                self._run_step(size, compute)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self._stream):
            self._run_step(size, compute)
        return graph

    def _rewind(self, weights: dict[str, Tensor], loss_state: dict[str, Tensor]) -> None:
        """Restore the state before the warm-up in place."""
        _copy_into(self._network.state_dict(), weights)
        _copy_into(self._loss.state_dict(), loss_state)
        for state in self._optimizer.state.values():
            for value in state.values():
                if isinstance(value, Tensor):
                    value.zero_()
        if self._spec.state is not None:
            self._restore(self._spec.state)

    def _restore(self, state: State) -> None:
        _copy_into(self._network.state_dict(), state.weights)
        _copy_into(self._loss.state_dict(), state.loss)
        parameters = [one for group in self._optimizer.param_groups for one in group["params"]]
        there = {
            f"{index}.{name}": value
            for index, parameter in enumerate(parameters)
            for name, value in self._optimizer.state[parameter].items()
        }
        _copy_into(there, state.optimizer)

    def _run_step(self, size: int, compute: Compute) -> None:
        recipe = self._spec.recipe
        first = self._step * recipe.batch
        chosen = self._draws.order[first + torch.arange(size, device=self._samples.device)]
        for group in self._optimizer.param_groups:
            rate = self._rates.index_select(0, self._step)  # rates[step] would synchronise
            group["lr"].copy_(rate[0] * group["lr_factor"])
        self._optimizer.zero_grad(set_to_none=True)
        with autocast(self._samples.device, recipe.bfloat16, cache=False):
            value = compute(
                self._network, self._loss, self._samples, self._draws, self._labels, chosen
            )
        value.backward()
        self._optimizer.step()
        after_step(self._network)
        self._total += value.detach() * size
        self._step += 1

    def start_epoch(self, epoch: int) -> None:
        """Copy the random draws and learning rates of an epoch to the static buffers."""
        recipe = self._spec.recipe
        for there, value in zip(self._draws, self._draw(epoch), strict=True):
            there.copy_(value)
        rates = [
            learning_rate_at(
                epoch + step / self.steps,
                schedule=recipe.schedule,
                lr=recipe.optimizer.lr,
                epochs=recipe.epochs,
            )
            for step in range(self.steps)
        ]
        self._rates.copy_(torch.tensor(rates))
        self._step.zero_()

    def start(self) -> None:
        self._total.zero_()
        self._counted = 0
        self._network.train()
        self._stream.wait_stream(torch.cuda.current_stream())

    def replay(self, step: int) -> None:
        """Launch one step asynchronously."""
        batch = self._spec.recipe.batch
        size = min(batch, len(self._samples) - step * batch)
        with torch.cuda.stream(self._stream):
            self._graphs[size].replay()
        self._counted += size

    def result(
        self, epoch: int, step_end: int, schedule: RecordedEpochs
    ) -> EpochResult | TrainingError | None:
        """Get the result or failure of the steps since `start`, or None if none is due."""
        mean = self._total.item() / self._counted
        lr = float(self._rates[step_end - 1])
        if not math.isfinite(mean):
            return divergence_error(mean, epoch, lr)
        if not schedule.steps_in(epoch):
            return None
        state = None
        if step_end == self.steps:
            state = capture_state(epoch + 1, self._network, self._optimizer, self._loss)
        return EpochResult(
            index=schedule.index(epoch, step_end),
            progress=epoch + step_end / self.steps,
            loss=mean,
            lr=lr,
            state=state,
        )


@torch.no_grad()
def _copy_into(there: dict[str, Tensor], values: dict[str, Tensor]) -> None:
    for name, value in values.items():
        there[name].copy_(value)


@contextlib.contextmanager
def _explain_capture_error() -> Iterator[None]:
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        reason = f"a step cannot be captured in a CUDA graph ({_first_line(error)})"
        raise NotCapturable(reason) from error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
