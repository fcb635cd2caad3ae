"""Noisy prediction calibration (NPC) of a trained network (Bae et al., 2022)."""

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from accord._recorders.eval_mode import eval_mode
from accord.baselines._features import INPUT, LoadSplit, extract_with_logits, last_layer
from accord.baselines._npc_model import (
    Autoencoder,
    build_autoencoder,
    calibrate,
    calibration_loss,
    prior_concentrations,
    similar_classes,
)
from accord.errors import ChoiceError, PredictionError
from accord.training._batches import Batches, ImageBatches
from accord.training._loop import autocast, divergence_error, explain_out_of_memory
from accord.training._randomness import IsolatedRandomState, derive_seed, draw_epoch

EPOCHS: Final = 10
STEPS: Final = 1000  # at least: in 80 steps, 10 epochs of 1,000 samples, it learns little
BATCH: Final = 128
RATE: Final = 1e-3


class Npc:
    """Trained network with NPC calibration."""

    def __init__(self, network: nn.Module, autoencoder: Autoencoder) -> None:
        self._network, self._autoencoder = network, autoencoder

    def predict_probabilities(
        self, samples: Batches, *, batch: int = 1024, bfloat16: bool = False
    ) -> NDArray[np.float32]:
        """Predict class probabilities of shape (sample, class).

        The trained network and its copy are evaluated without changing their state.
        """
        parts = torch.arange(len(samples)).split(batch)
        tables = []
        with eval_mode(self._network), eval_mode(self._autoencoder), explain_out_of_memory():
            for taken in samples.stream(parts):
                with autocast(samples.device, bfloat16):
                    predicted, logits = self._network(taken), self._autoencoder.network(taken)
                tables.append(calibrate(self._autoencoder, logits.float(), predicted.float()))
        probabilities: NDArray[np.float32] = torch.cat(tables).cpu().numpy()
        return probabilities


def learning_epochs(samples: int) -> int:
    """Compute the number of training epochs, at least 10 and enough for 1,000 steps.

    >>> learning_epochs(50_000), learning_epochs(1000)
    (10, 125)
    """
    return max(EPOCHS, math.ceil(STEPS / math.ceil(samples / BATCH)))


def fit_npc(
    network: nn.Module,
    samples: Batches,
    *,
    seed: int,
    epochs: int | None = None,
    bfloat16: bool = False,
) -> Npc:
    """Fit NPC to the predictions of a trained network.

    The given labels are not used: the errors are learnt from the predictions for the training
    samples and for similar samples. A copy of the network is trained. The network is unchanged.
    Torch's global random state is neither read nor changed.

    Args:
        network: a trained network, on the device of the samples.
        samples: its training samples, without augmentation.
        seed: of all random draws.
        epochs: the epochs of training, by default `learning_epochs`.
        bfloat16: compute in bfloat16 under autocast.

    Raises:
        ChoiceError: `epochs` is below 1, or the network has no last linear layer.
        PredictionError: the network predicts one class only, or numbers that are not finite.
        TrainingError: the loss is not finite, or the device is out of memory.
    """
    if epochs is not None and epochs < 1:
        raise ChoiceError(f"NPC needs at least 1 epoch of training; got {epochs}")
    layer = last_layer(network) + INPUT
    features, logits = extract_with_logits(network, samples, [layer], bfloat16=bfloat16)
    predicted = logits.argmax(axis=1)
    if (predicted == predicted[0]).all():
        raise PredictionError(
            f"the network predicts class {predicted[0]} for all {len(predicted)} training samples: "
            "there is nothing to calibrate. Is the network trained?"
        )
    device, classes = samples.device, logits.shape[1]
    similar = similar_classes(
        features[layer], logits, seed=derive_seed(seed, 0), batch=BATCH, device=device
    )
    autoencoder = build_autoencoder(network, classes=classes, seed=derive_seed(seed, 1))
    one_hot = functional.one_hot(torch.from_numpy(predicted).to(device), classes).float()
    prior = prior_concentrations(similar, classes=classes)
    _train(
        autoencoder,
        samples,
        one_hot,
        prior,
        seed=derive_seed(seed, 2),
        epochs=learning_epochs(len(samples)) if epochs is None else epochs,
        bfloat16=bfloat16,
    )
    return Npc(network, autoencoder)


def predict_npc(
    network: nn.Module,
    load: LoadSplit,
    *,
    seed: int,
    split: str = "test",
    epochs: int | None = None,
    bfloat16: bool = False,
) -> NDArray[np.float32]:
    """Predict class probabilities of shape (sample, class) for a split.

    For several networks, calibrate each and take the majority of their largest classes.

    Args:
        network: trained on the training split; moved to the device of the samples.
        load: returns the samples of a split, such as `partial(data.batches, device=device)`.
        seed: of all random draws.
        split: the split to predict.
        epochs: the epochs of training, by default `learning_epochs`.
        bfloat16: compute in bfloat16 under autocast.

    Raises:
        ChoiceError, PredictionError, TrainingError: as `fit_npc` does.
    """
    train = load("train")
    network.to(train.device)
    npc = fit_npc(network, train, seed=seed, epochs=epochs, bfloat16=bfloat16)
    return npc.predict_probabilities(load(split), bfloat16=bfloat16)


def _train(
    autoencoder: Autoencoder,
    samples: Batches,
    predicted: Tensor,  # one-hot, (sample, class)
    prior: Tensor,  # (sample, class)
    *,
    seed: int,
    epochs: int,
    bfloat16: bool,
) -> None:
    on_gpu = samples.device.type == "cuda"
    optimizer = torch.optim.Adam(autoencoder.parameters(), lr=RATE, fused=on_gpu)
    autoencoder.train()
    forward = _forward_pass(autoencoder.network, samples, bfloat16=bfloat16)
    for epoch in range(epochs):
        total = torch.zeros((), device=samples.device)
        order = draw_epoch(len(samples), seed=seed, epoch=epoch).order
        # A single sample has no variance for batch norm.
        parts = [part for part in order.split(BATCH) if len(part) > 1]
        randomness = IsolatedRandomState(derive_seed(seed, epoch, 1), samples.device)
        with randomness.active(), explain_out_of_memory():
            for part, taken in zip(parts, samples.stream(parts), strict=True):
                chosen = part.to(samples.device)
                logits = forward(taken)
                uniform = 1 - torch.rand_like(prior[chosen])  # above 0
                loss = calibration_loss(
                    autoencoder, logits, predicted[chosen], prior[chosen], uniform
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.detach()
        if not math.isfinite(total.item()):
            raise divergence_error(total.item() / len(samples), epoch, RATE)


def _forward_pass(
    network: nn.Module, samples: Batches, *, bfloat16: bool
) -> Callable[[Tensor], Tensor]:
    # On a GPU, full batches run as a CUDA graph: launching the kernels of a small batch one by one
    # takes longer than the kernels.

    def plain(taken: Tensor) -> Tensor:
        with autocast(samples.device, bfloat16):
            logits: Tensor = network(taken)
        return logits.float()

    images = isinstance(samples, ImageBatches)
    if samples.device.type != "cuda" or len(samples) < BATCH or not images:
        return plain
    example = samples.take(torch.arange(BATCH))
    before = {name: value.clone() for name, value in network.named_buffers()}
    with torch.autocast("cuda", torch.bfloat16, enabled=bfloat16, cache_enabled=False):
        # Wrapped in another module: modules with hooks are refused.
        graphed: Any = torch.cuda.make_graphed_callables(nn.Sequential(network), (example,))
    for name, value in network.named_buffers():
        value.copy_(before[name])  # warming up changed the running means of batch norm
    return lambda taken: graphed(taken).float() if len(taken) == BATCH else plain(taken)
