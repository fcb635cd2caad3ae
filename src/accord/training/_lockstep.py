"""The lockstep: several networks side by side on one GPU, each step a CUDA graph of its own.

Launching kernels one by one keeps a GPU waiting for Python. Here a whole step (taking the batch,
augmenting, forward, backward, optimizer) is captured once for each network and replayed on the
network's own stream, so that one network's small kernels fill the gaps of another's. Long runs
are compiled first, once for all networks that are alike. The lockstep takes order, augmentation
and rates from where the readable loop takes them, and trains the same.
"""

import contextlib
import logging
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

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

WARM_UP: Final = 3  # steps before a capture, in which libraries choose their algorithms
WORTH_COMPILING: Final = 1500  # steps of all networks or members, a layer, from which on it pays
COMPILE: Final = "ACCORD_COMPILE"  # the environment variable: auto, always or never

_logger = logging.getLogger(__name__)

Compute = Callable[[nn.Module, nn.Module, Batches, Draws, Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class LockstepNetwork:
    """One network that is to be trained, and how."""

    network: nn.Module
    loss: nn.Module
    recipe: Recipe
    seed: int
    state: State | None = None


def lockstep_obstacle(samples: object) -> str | None:
    """Say why networks cannot be trained in lockstep on these samples; None if they can."""
    if not torch.cuda.is_available():
        return "there is no CUDA device"
    if isinstance(samples, TableBatches) or (
        isinstance(samples, ImageBatches) and samples.in_memory
    ):
        return None
    return "the samples are not images or rows in memory"


def train_lockstep(
    entrants: Sequence[LockstepNetwork], samples: Batches, labels: Tensor
) -> Iterator[tuple[int, EpochResult | TrainingError]]:
    """Train networks together; yields which one has reached a moment, or why it was stopped.

    All entrants train for the same epochs, in batches of the same size; those that go on from a
    later state join when the others have caught up.

    Raises:
        NotCapturable: a network waits for the GPU in the middle of a step, say to print a value.
        TrainingError: the device is out of memory; the graphs take all they need at the start.
    """
    labels = labels.to(samples.device)
    recipe = entrants[0].recipe
    steps = math.ceil(len(samples) / recipe.batch)
    compute = _choose_compute(entrants, steps)
    randomness = IsolatedRandomState(derive_seed(entrants[0].seed, 0, 2), samples.device)
    with explain_out_of_memory(), _algorithms_tried(), randomness.active():
        lanes = {
            position: _Lane(entrant, samples, labels, compute)
            for position, entrant in enumerate(entrants)
        }
    schedule = recipe.recording_schedule(len(samples))
    for epoch in range(recipe.epochs):
        running = {position: lane for position, lane in lanes.items() if epoch >= lane.begin}
        randomness = IsolatedRandomState(derive_seed(entrants[0].seed, epoch, 1), samples.device)
        for lane in running.values():
            lane.start_epoch(epoch)
        done = 0
        for mark in schedule.steps_in(epoch) or [steps]:
            with randomness.active():
                _replay(list(running.values()), range(done, mark))
            done = mark
            for position, lane in list(running.items()):
                reached = lane.reach(epoch, mark, schedule)
                if isinstance(reached, TrainingError):
                    del lanes[position], running[position]
                if reached is not None:
                    yield position, reached


def _replay(lanes: Sequence["_Lane"], steps: range) -> None:
    for lane in lanes:
        lane.start()
    for step in steps:
        for lane in lanes:
            lane.replay(step)
    torch.cuda.synchronize()


def _choose_compute(entrants: Sequence[LockstepNetwork], steps: int) -> Compute:
    """Return what a step computes, compiled if the run is long enough for that to pay."""
    left = [entrant.recipe.epochs - _begin(entrant) for entrant in entrants]
    asked = os.environ.get(COMPILE, "auto")
    if asked not in ("auto", "always", "never"):
        raise ChoiceError(f"{COMPILE} must be auto, always or never; got {asked!r}")
    network = entrants[0].network
    passes = sum(left) * steps * getattr(network, "members", 1)
    pays = passes >= WORTH_COMPILING * _count_layers(network)
    return _Compiled() if asked == "always" or (asked == "auto" and pays) else compute_loss


def _count_layers(network: nn.Module) -> int:
    return sum(1 for module in network.modules() if any(True for _ in module.parameters(False)))


def _begin(entrant: LockstepNetwork) -> int:
    return 0 if entrant.state is None else entrant.state.epochs


def compute_loss(
    network: nn.Module,
    loss: nn.Module,
    samples: Batches,
    draws: Draws,
    labels: Tensor,
    chosen: Tensor,
) -> Tensor:
    """Return the loss of a network on some samples: all of a step but its backward half."""
    logits = network(samples.take(chosen, draws))
    value: Tensor = loss(logits.float(), labels[chosen], chosen)
    return value


class _Compiled:
    """The same, compiled; as written where compiling fails.

    One set of kernels serves all networks of one kind: their parameters are arguments to it.
    """

    def __init__(self) -> None:
        self._compiled: Compute | None = torch.compile(compute_loss, dynamic=False)

    def __call__(
        self,
        network: nn.Module,
        loss: nn.Module,
        samples: Batches,
        draws: Draws,
        labels: Tensor,
        chosen: Tensor,
    ) -> Tensor:
        from torch._dynamo.exc import TorchDynamoException  # takes a second to import

        if self._compiled is not None:
            try:
                return self._compiled(network, loss, samples, draws, labels, chosen)
            except TorchDynamoException as error:
                _logger.warning("the networks are trained uncompiled: %s", _first_line(error))
                self._compiled = None
        return compute_loss(network, loss, samples, draws, labels, chosen)


@contextlib.contextmanager
def _algorithms_tried() -> Iterator[None]:
    """Let cuDNN try its algorithms while the graphs are captured, which then keep the fastest."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


class _Lane:
    """One network with its stream, its graphs and the memory that they read."""

    def __init__(
        self, entrant: LockstepNetwork, samples: Batches, labels: Tensor, compute: Compute
    ) -> None:
        device, recipe = samples.device, entrant.recipe
        self._entrant, self._samples, self._labels = entrant, samples, labels
        self.steps = math.ceil(len(samples) / recipe.batch)
        self.begin = _begin(entrant)
        self._network = entrant.network.to(device)
        self._loss = entrant.loss.to(device)
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
        entrant = self._entrant
        return draw_for(entrant.recipe, len(self._samples), seed=entrant.seed, epoch=epoch)

    def _capture(self) -> dict[int, torch.cuda.CUDAGraph]:
        """Capture a step for each size of batch there is: the last may be smaller."""
        before = capture_state(0, self._network, self._optimizer, self._loss)
        kept = {name: value.clone() for name, value in before.weights.items()}
        remembered = {name: value.clone() for name, value in before.loss.items()}
        whole = min(self._entrant.recipe.batch, len(self._samples))
        last = len(self._samples) - (self.steps - 1) * self._entrant.recipe.batch
        self._network.train()
        graphs = {}
        self._stream.wait_stream(torch.cuda.current_stream())
        with _only_what_graphs_hold():
            for size in dict.fromkeys([whole, last]):
                # The last batch of an epoch is not worth compiling for.
                compute = self._compute if size == whole else compute_loss
                graphs[size] = self._capture_step(size, compute)
        torch.cuda.synchronize()
        self._rewind(kept, remembered)
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

    def _rewind(self, weights: dict[str, Tensor], remembered: dict[str, Tensor]) -> None:
        """Undo what warming up did, in place: the graphs keep reading the same memory."""
        _copy_into(self._network.state_dict(), weights)
        _copy_into(self._loss.state_dict(), remembered)
        for state in self._optimizer.state.values():
            for value in state.values():
                if isinstance(value, Tensor):
                    value.zero_()
        if self._entrant.state is not None:
            self._restore(self._entrant.state)

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
        recipe = self._entrant.recipe
        first = self._step * recipe.batch
        chosen = self._draws.order[first + torch.arange(size, device=self._samples.device)]
        for group in self._optimizer.param_groups:
            rate = self._rates.index_select(0, self._step)  # rates[step] would wait for the step
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
        """Put an epoch's draws and rates where the graphs read them."""
        recipe = self._entrant.recipe
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
        """Make ready for some steps of the epoch."""
        self._total.zero_()
        self._counted = 0
        self._network.train()
        self._stream.wait_stream(torch.cuda.current_stream())

    def replay(self, step: int) -> None:
        """Start one step; it runs while the next network's is started."""
        size = min(self._entrant.recipe.batch, len(self._samples) - self._first(step))
        with torch.cuda.stream(self._stream):
            self._graphs[size].replay()
        self._counted += size

    def _first(self, step: int) -> int:
        return step * self._entrant.recipe.batch

    def reach(
        self, epoch: int, mark: int, schedule: RecordedEpochs
    ) -> EpochResult | TrainingError | None:
        """Return the moment that has been reached, if it is one, or why there will be no other."""
        mean = self._total.item() / self._counted
        lr = float(self._rates[mark - 1])
        if not math.isfinite(mean):
            return divergence_error(mean, epoch, lr)
        if not schedule.steps_in(epoch):
            return None
        done = mark == self.steps
        return EpochResult(
            index=schedule.index(epoch, mark),
            progress=float(epoch + 1) if done else epoch + mark / self.steps,
            loss=mean,
            lr=lr,
            state=capture_state(epoch + 1, self._network, self._optimizer, self._loss)
            if done
            else None,
        )


@torch.no_grad()
def _copy_into(there: dict[str, Tensor], values: dict[str, Tensor]) -> None:
    for name, value in values.items():
        there[name].copy_(value)


@contextlib.contextmanager
def _only_what_graphs_hold() -> Iterator[None]:
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        reason = f"a step cannot be held in a CUDA graph ({_first_line(error)})"
        raise NotCapturable(reason) from error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
