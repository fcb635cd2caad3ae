"""Training loop for a single network."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from accord._recorders.schedule import RecordedEpochs
from accord.errors import TrainingError
from accord.training._batches import Batches, max_shift
from accord.training._checkpoints import State, capture_state, restore
from accord.training._randomness import Draws, IsolatedRandomState, derive_seed, draw_epoch
from accord.training._spec import OptimizerSpec, ScheduleSpec
from accord.training.networks import parameter_groups


def learning_rate_at(progress: float, *, schedule: ScheduleSpec, lr: float, epochs: int) -> float:
    """Compute the learning rate after `progress` of `epochs` epochs.

    A cosine changes once per epoch, as in the paper's code, and restarts after every `cycle`
    epochs. Warm-up and linear schedules change with every step.

    >>> cosine = ScheduleSpec(kind="cosine")
    >>> [round(learning_rate_at(p, schedule=cosine, lr=0.1, epochs=4), 3) for p in (0, 2, 4)]
    [0.1, 0.05, 0.0]
    """
    if progress < schedule.warmup:
        return lr * progress / schedule.warmup
    period = max(epochs - schedule.warmup, 1e-9)
    match schedule.kind:
        case "constant":
            return lr
        case "step":
            return lr * schedule.factor ** sum(progress >= one for one in schedule.milestones)
        case "linear":
            return lr * (1 - (progress - schedule.warmup) / period)
        case "cosine":
            whole = math.floor(progress - schedule.warmup)
            share = whole % schedule.cycle / schedule.cycle if schedule.cycle else whole / period
            return lr * ((1 + math.cos(math.pi * share)) / 2)


@dataclass(frozen=True)
class Recipe:
    epochs: int
    batch: int = 128
    optimizer: OptimizerSpec = field(default_factory=OptimizerSpec)
    schedule: ScheduleSpec = field(default_factory=ScheduleSpec)
    augment: tuple[str, ...] = ()
    every: float = 1.0  # epochs between two evaluations
    bfloat16: bool = False

    def recording_schedule(self, samples: int) -> RecordedEpochs:
        return RecordedEpochs.of_training(
            self.epochs, self.every, batch=self.batch, samples=samples
        )


@dataclass(frozen=True)
class EpochResult:
    index: int  # of the recorded epoch, counted from 0
    progress: float  # epochs trained
    loss: float  # mean over the samples since the previous result
    lr: float
    state: State | None  # only at the end of an epoch


def train_loop(
    network: nn.Module,
    loss: nn.Module,  # called with logits, labels and the positions of the samples
    samples: Batches,
    labels: Tensor,  # (sample,), as given, or probabilities (sample, class)
    *,
    recipe: Recipe,
    seed: int,
    state: State | None = None,
) -> Iterator[EpochResult]:
    """Train a network in place and yield a result for each recorded epoch.

    Order and augmentation follow from seed and epoch alone, and torch's global random state is
    neither read nor changed: on a CPU, resuming from a state gives the same bits.
    """
    device = samples.device
    network.to(device)
    loss.to(device)
    labels = labels.to(device)
    optimizer = build_optimizer(network, recipe.optimizer)
    begin = 0
    if state is not None:
        restore(state, network, optimizer, loss)
        begin = state.epochs

    steps = math.ceil(len(samples) / recipe.batch)
    schedule = recipe.recording_schedule(len(samples))
    for epoch in range(begin, recipe.epochs):
        draws = draw_for(recipe, len(samples), seed=seed, epoch=epoch)
        parts = draws.order.split(recipe.batch)
        randomness = IsolatedRandomState(derive_seed(seed, epoch, 1), device)
        position = 0
        recorded = schedule.steps_in(epoch)
        for step_end in recorded or [steps]:
            total = torch.zeros((), device=device)
            network.train()
            first = position * recipe.batch
            with randomness.active():
                positions = parts[position:step_end]
                batches = zip(positions, samples.stream(positions, draws), strict=True)
                for step, (chosen, batch) in enumerate(batches, start=position):
                    lr = learning_rate_at(
                        epoch + step / steps,
                        schedule=recipe.schedule,
                        lr=recipe.optimizer.lr,
                        epochs=recipe.epochs,
                    )
                    set_learning_rate(optimizer, lr)
                    with (
                        explain_out_of_memory(),
                        explain_single_sample(len(chosen)),
                        autocast(device, recipe.bfloat16),
                    ):
                        logits = network(batch)
                        value = loss(logits.float(), labels[chosen.to(device)], chosen.to(device))
                        optimizer.zero_grad()
                        value.backward()
                        optimizer.step()
                    after_step(network)
                    total += value.detach() * len(chosen)
            position = step_end
            mean = total.item() / (min(step_end * recipe.batch, len(samples)) - first)
            if not math.isfinite(mean):
                raise divergence_error(mean, epoch, lr)
            if recorded:
                done = step_end == steps
                yield EpochResult(
                    index=schedule.index(epoch, step_end),
                    progress=epoch + step_end / steps,
                    loss=mean,
                    lr=lr,
                    state=capture_state(epoch + 1, network, optimizer, loss) if done else None,
                )


def after_step(network: nn.Module) -> None:
    hook = getattr(network, "after_step", None)
    if hook is not None:
        hook()


def draw_for(recipe: Recipe, samples: int, *, seed: int, epoch: int) -> Draws:
    kinds = recipe.augment
    windows = "resized-crop" in kinds
    return draw_epoch(samples, seed=seed, epoch=epoch, reach=max_shift(kinds), windows=windows)


def predict_probabilities(
    network: nn.Module,
    samples: Batches,
    *,
    chosen: Tensor | None = None,
    bfloat16: bool = False,
    batch: int = 1024,
) -> NDArray[np.float32]:
    """Predict class probabilities of shape (sample, class), for all or the `chosen` samples.

    A BatchEnsemble returns (member, sample, class). The network predicts in evaluation mode and
    is left unchanged.
    """
    parts = (torch.arange(len(samples)) if chosen is None else chosen).split(batch)
    with (
        evaluation_mode(network),
        torch.inference_mode(),
        explain_out_of_memory(),
        autocast(samples.device, bfloat16),
    ):
        logits = torch.cat([network(part).float() for part in samples.stream(parts)], dim=-2)
        probabilities: NDArray[np.float32] = logits.softmax(dim=-1).cpu().numpy()
    return probabilities


def build_optimizer(
    network: nn.Module, spec: OptimizerSpec, *, fused: bool | None = None
) -> torch.optim.Optimizer:
    """Build an optimizer with half the learning rate for the weights of BatchEnsemble members.

    Only a fused optimizer can be captured in a CUDA graph.
    """
    groups = parameter_groups(network, lr=spec.lr, weight_decay=spec.weight_decay)
    if spec.kind == "adamw":
        return torch.optim.AdamW(
            groups, lr=spec.lr, betas=spec.betas, fused=fused, capturable=bool(fused)
        )
    return torch.optim.SGD(
        groups, lr=spec.lr, momentum=spec.momentum, nesterov=spec.nesterov, fused=fused
    )


def divergence_error(loss: float, epoch: int, lr: float) -> TrainingError:
    return TrainingError(
        f"the loss became {loss} in epoch {epoch} at learning rate {lr:g}. "
        "A smaller rate, a warm-up, or float32 instead of bfloat16 may help."
    )


def set_learning_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = lr * group["lr_factor"]


@contextmanager
def evaluation_mode(network: nn.Module) -> Iterator[None]:
    # Module by module: a caller may have frozen one batch norm and not the others.
    in_training = [module for module in network.modules() if module.training]
    network.eval()
    try:
        yield
    finally:
        for module in in_training:
            module.training = True


def autocast(device: torch.device, bfloat16: bool, *, cache: bool = True) -> torch.autocast:
    """Context manager for bfloat16 autocasting. Captured steps must not cache weights."""
    return torch.autocast(device.type, torch.bfloat16, enabled=bfloat16, cache_enabled=cache)


@contextmanager
def explain_single_sample(samples: int) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        if samples > 1:
            raise
        raise TrainingError(
            f"the last batch of an epoch has one sample, but the network needs more ({error}). "
            "Choose another train.batch."
        ) from error


@contextmanager
def explain_out_of_memory() -> Iterator[None]:
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise TrainingError(
            "the device is out of memory. Halve train.batch, use a smaller network, or keep "
            "the images on disk"
        ) from error
