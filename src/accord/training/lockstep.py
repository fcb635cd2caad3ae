"""The lockstep: several networks side by side on one GPU, each step a CUDA graph of its own.

Launching kernels one by one keeps a GPU waiting for Python. Here a whole step (taking the batch,
augmenting, forward, backward, optimizer) is captured once for each network and replayed on the
network's own stream, so that one network's small kernels fill the gaps of another's. It takes
order, augmentation and rates from where the readable loop takes them, and trains the same.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from accord.errors import TrainingError
from accord.training.batches import ImageBatches, reach_of
from accord.training.checkpoints import State, state_of
from accord.training.loop import (
    Moment,
    Recipe,
    build_optimizer,
    diverged,
    out_of_memory_named,
    precision,
)
from accord.training.schedules import rate_at
from accord.training.seeds import Draws, draw_epoch

WARM_UP = 3  # steps before a capture, in which libraries choose their algorithms


@dataclass(frozen=True, eq=False)
class Entrant:
    """One network that is to be trained, and how."""

    network: nn.Module
    loss: nn.Module
    recipe: Recipe
    seed: int
    state: State | None = None


def why_not(samples: object, entrants: Sequence[Entrant]) -> str | None:
    """Say why these networks cannot be trained in lockstep; None if they can."""
    return next(_reasons(samples, entrants), None)


def _reasons(samples: object, entrants: Sequence[Entrant]) -> Iterator[str]:
    if not torch.cuda.is_available():
        yield "there is no CUDA device"
    if len(entrants) < 2:
        yield "there is one network"
    if not isinstance(samples, ImageBatches) or not samples.in_memory:
        yield "the samples are not images in memory"
    recipes = [entrant.recipe for entrant in entrants]
    if any(recipe.optimizer.kind != "sgd" for recipe in recipes):
        yield "an optimizer is not SGD"
    if any(recipe.every < 1 for recipe in recipes):
        yield "fractions of an epoch are recorded"
    if any(_draws_numbers(entrant.network) for entrant in entrants):
        yield "a network draws random numbers of its own"


def train_side_by_side(
    entrants: Sequence[Entrant], samples: ImageBatches, labels: Tensor
) -> Iterator[tuple[int, Moment | TrainingError]]:
    """Train networks together; yields which one has reached a moment, or why it was stopped.

    All entrants train for the same epochs, in batches of the same size; those that go on from a
    later state join when the others have caught up.

    Raises:
        TrainingError: the device is out of memory; the graphs take all they need at the start.
    """
    labels = labels.to(samples.device)
    with out_of_memory_named():
        lanes = dict(enumerate(_Lane(entrant, samples, labels) for entrant in entrants))
    recipe = entrants[0].recipe
    every, number = round(recipe.every), 0
    for epoch in range(recipe.epochs):
        running = {position: lane for position, lane in lanes.items() if epoch >= lane.begin}
        _run_epoch(list(running.values()), epoch)
        marked = (epoch + 1) % every == 0 or epoch == recipe.epochs - 1
        for position, lane in running.items():
            reached = lane.finish_epoch(epoch, number)
            if isinstance(reached, TrainingError):
                del lanes[position]
            if marked or isinstance(reached, TrainingError):
                yield position, reached
        number += marked


def _run_epoch(lanes: Sequence["_Lane"], epoch: int) -> None:
    for lane in lanes:
        lane.start_epoch(epoch)
    for step in range(lanes[0].steps if lanes else 0):
        for lane in lanes:
            lane.replay(step)
    torch.cuda.synchronize()


class _Lane:
    """One network with its stream, its graphs and the memory that they read."""

    def __init__(self, entrant: Entrant, samples: ImageBatches, labels: Tensor) -> None:
        device, recipe = samples.device, entrant.recipe
        self._entrant, self._samples, self._labels = entrant, samples, labels
        self.steps = math.ceil(len(samples) / recipe.batch)
        self.begin = 0 if entrant.state is None else entrant.state.epochs
        self._network = entrant.network.to(device)
        self._loss = entrant.loss.to(device)
        self._optimizer = build_optimizer(self._network, recipe.optimizer, fused=True)
        for group in self._optimizer.param_groups:
            group["lr"] = torch.tensor(group["lr"], device=device)
        self._draws = _on_device(self._draw(0), device)
        self._rates = torch.zeros(self.steps, device=device)
        self._step = torch.zeros(1, dtype=torch.long, device=device)
        self._total = torch.zeros((), device=device)
        self._stream = torch.cuda.Stream()
        self._graphs = self._capture()

    def _draw(self, epoch: int) -> Draws:
        recipe, seed = self._entrant.recipe, self._entrant.seed
        reach = reach_of(recipe.augment)
        return draw_epoch(len(self._samples), seed=seed, epoch=epoch, reach=reach)

    def _capture(self) -> dict[int, torch.cuda.CUDAGraph]:
        """Capture a step for each size of batch there is: the last may be smaller."""
        before = state_of(0, self._network, self._optimizer, self._loss)
        kept = {name: value.clone() for name, value in before.weights.items()}
        remembered = {name: value.clone() for name, value in before.loss.items()}
        whole = min(self._entrant.recipe.batch, len(self._samples))
        last = len(self._samples) - (self.steps - 1) * self._entrant.recipe.batch
        self._network.train()
        graphs = {}
        self._stream.wait_stream(torch.cuda.current_stream())
        for size in {whole, last}:
            with torch.cuda.stream(self._stream):
                for _ in range(WARM_UP):
                    self._step.zero_()
                    self._run_step(size)
            torch.cuda.synchronize()
            graphs[size] = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graphs[size], stream=self._stream):
                self._run_step(size)
        torch.cuda.synchronize()
        self._rewind(kept, remembered)
        return graphs

    def _rewind(self, weights: dict[str, Tensor], remembered: dict[str, Tensor]) -> None:
        """Undo what warming up did, in place: the graphs keep reading the same memory."""
        with torch.no_grad():
            for values, there in (
                (weights, self._network.state_dict()),
                (remembered, self._loss.state_dict()),
            ):
                for name, value in values.items():
                    there[name].copy_(value)
            for state in self._optimizer.state.values():
                for value in state.values():
                    if isinstance(value, Tensor):
                        value.zero_()
            if self._entrant.state is not None:
                self._restore(self._entrant.state)

    def _restore(self, state: State) -> None:
        for there, values in (
            (self._network.state_dict(), state.weights),
            (self._loss.state_dict(), state.loss),
        ):
            for name, value in values.items():
                there[name].copy_(value)
        for index, parameter in enumerate(self._parameters()):
            buffer = self._optimizer.state[parameter].get("momentum_buffer")
            kept = state.optimizer.get(f"{index}.momentum_buffer")
            if buffer is not None and kept is not None:
                buffer.copy_(kept)

    def _parameters(self) -> list[Tensor]:
        return [one for group in self._optimizer.param_groups for one in group["params"]]

    def _run_step(self, size: int) -> None:
        recipe = self._entrant.recipe
        first = self._step * recipe.batch
        chosen = self._draws.order[first + torch.arange(size, device=self._samples.device)]
        for group in self._optimizer.param_groups:
            rate = self._rates.index_select(0, self._step)  # rates[step] would wait for the step
            group["lr"].copy_(rate[0] * group["lr_factor"])
        self._optimizer.zero_grad(set_to_none=True)
        with precision(self._samples.device, recipe.bfloat16, cache=False):
            logits = self._network(self._samples.take(chosen, self._draws))
            value = self._loss(logits.float(), self._labels[chosen], chosen)
        value.backward()
        self._optimizer.step()
        self._total += value.detach() * size
        self._step += 1

    def start_epoch(self, epoch: int) -> None:
        """Put an epoch's draws and rates where the graphs read them."""
        recipe = self._entrant.recipe
        for there, value in zip(self._draws, self._draw(epoch), strict=True):
            there.copy_(value)
        rates = [
            rate_at(
                epoch + step / self.steps,
                schedule=recipe.schedule,
                lr=recipe.optimizer.lr,
                epochs=recipe.epochs,
            )
            for step in range(self.steps)
        ]
        self._rates.copy_(torch.tensor(rates))
        self._step.zero_()
        self._total.zero_()
        self._network.train()
        self._stream.wait_stream(torch.cuda.current_stream())

    def replay(self, step: int) -> None:
        """Start one step; it runs while the next network's is started."""
        left = len(self._samples) - step * self._entrant.recipe.batch
        with torch.cuda.stream(self._stream):
            self._graphs[min(self._entrant.recipe.batch, left)].replay()

    def finish_epoch(self, epoch: int, number: int) -> Moment | TrainingError:
        """Return the moment that the epoch's end is, or why there will be no other."""
        mean = self._total.item() / len(self._samples)
        if not math.isfinite(mean):
            return diverged(mean, epoch, float(self._rates[-1]))
        return Moment(
            number=number,
            progress=float(epoch + 1),
            loss=mean,
            lr=float(self._rates[-1]),
            state=state_of(epoch + 1, self._network, self._optimizer, self._loss),
        )


def _on_device(draws: Draws, device: torch.device) -> Draws:
    return Draws(*(value.to(device) for value in draws))


def _draws_numbers(network: nn.Module) -> bool:
    kinds = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
    return any(isinstance(module, kinds) and module.p > 0 for module in network.modules())
