"""NPC, noisy prediction calibration of a trained network (Bae and others, 2022)."""

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from accord._recorders.eval_mode import eval_mode
from accord.baselines._features import INPUT, Sees, extract_with_logits, last_layer
from accord.baselines._npc_model import (
    Autoencoder,
    build_autoencoder,
    calibrate,
    calibration_loss,
    prior_concentrations,
    similar_classes,
)
from accord.errors import ChoiceError, PredictionError
from accord.training._batches import Batches, ImageBatches, stream_batches
from accord.training._loop import autocast, divergence_error, explain_out_of_memory
from accord.training._randomness import IsolatedRandomState, derive_seed, draw_epoch

EPOCHS: Final = 10
STEPS: Final = 1000  # at the least: in 80, what 1,000 samples give in 10 epochs, little is learnt
BATCH: Final = 128
RATE: Final = 1e-3


class Npc:
    """A trained network with its calibration."""

    def __init__(self, network: nn.Module, autoencoder: Autoencoder) -> None:
        self._network, self._autoencoder = network, autoencoder

    def predict_probabilities(
        self, samples: Batches, *, batch: int = 1024, bfloat16: bool = False
    ) -> NDArray[np.float32]:
        """Predict the probability of each class for each sample, (sample, class).

        Both networks, the trained one and its copy, answer in evaluation mode.
        """
        parts = torch.arange(len(samples)).split(batch)
        tables = []
        with eval_mode(self._network), eval_mode(self._autoencoder), explain_out_of_memory():
            for taken in stream_batches(samples, parts):
                with autocast(samples.device, bfloat16):
                    answers, logits = self._network(taken), self._autoencoder.network(taken)
                tables.append(calibrate(self._autoencoder, logits.float(), answers.float()))
        probabilities: NDArray[np.float32] = torch.cat(tables).cpu().numpy()
        return probabilities


def learning_epochs(samples: int) -> int:
    """Return how long to learn from so many samples: 10 epochs, but at least 1,000 steps.

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
    """Learn how a trained network's predictions are wrong.

    The given labels play no part: all is learnt from what the network predicts of the samples it
    was trained on, and of those that are like them. The network is left as it was, and a copy of
    it is trained. Chance follows from the seed; torch's global random state is neither read nor
    changed.

    Args:
        network: trained, on the device of the samples.
        samples: those it was trained on, taken plain.
        seed: where all chance comes from.
        epochs: how long to learn; by default as `learning_epochs` says.
        bfloat16: whether to compute in it where that is safe.

    Raises:
        ChoiceError: fewer than 1 epoch, or a network without a last linear layer.
        PredictionError: the network predicts one class only, or numbers that are not finite.
        TrainingError: the loss is not a number any more, or the device is out of memory.
    """
    if epochs is not None and epochs < 1:
        raise ChoiceError(f"NPC must learn for at least 1 epoch; got {epochs}.")
    layer = last_layer(network) + INPUT
    features, logits = extract_with_logits(network, samples, [layer], bfloat16=bfloat16)
    predicted = logits.argmax(axis=1)
    _check_predictions(predicted)
    device, classes = samples.device, logits.shape[1]
    similar = similar_classes(
        features[layer], logits, seed=derive_seed(seed, 0), batch=BATCH, device=device
    )
    autoencoder = build_autoencoder(network, classes=classes, seed=derive_seed(seed, 1))
    said = functional.one_hot(torch.from_numpy(predicted).to(device), classes).float()
    prior = prior_concentrations(similar, classes=classes)
    _train(
        autoencoder,
        samples,
        said,
        prior,
        seed=derive_seed(seed, 2),
        epochs=learning_epochs(len(samples)) if epochs is None else epochs,
        bfloat16=bfloat16,
    )
    return Npc(network, autoencoder)


def predict_npc(
    network: nn.Module,
    sees: Sees,
    *,
    seed: int,
    split: str = "test",
    epochs: int | None = None,
    bfloat16: bool = False,
) -> NDArray[np.float32]:
    """Predict the probability of each class for each sample of a split, (sample, class).

    For several networks, calibrate each, and take the majority of their largest classes.

    Args:
        network: trained on the training samples; moved to their device.
        sees: gives a split's samples, such as `partial(material.batches, device=device)`.
        seed: where all chance comes from.
        split: what to predict.
        epochs: how long to learn; by default as `learning_epochs` says.
        bfloat16: whether to compute in it where that is safe.

    Raises:
        ChoiceError, PredictionError, TrainingError: as `fit_npc` does.
    """
    train = sees("train")
    network.to(train.device)
    npc = fit_npc(network, train, seed=seed, epochs=epochs, bfloat16=bfloat16)
    return npc.predict_probabilities(sees(split), bfloat16=bfloat16)


def _train(
    autoencoder: Autoencoder,
    samples: Batches,
    said: Tensor,  # (sample, class)
    prior: Tensor,  # (sample, class)
    *,
    seed: int,
    epochs: int,
    bfloat16: bool,
) -> None:
    on_gpu = samples.device.type == "cuda"
    optimizer = torch.optim.Adam(autoencoder.parameters(), lr=RATE, fused=on_gpu)
    autoencoder.train()
    answer = _answers(autoencoder.network, samples, bfloat16=bfloat16)
    for epoch in range(epochs):
        total = torch.zeros((), device=samples.device)
        order = draw_epoch(len(samples), seed=seed, epoch=epoch).order
        # Batch norm cannot tell the spread of a single sample.
        parts = [part for part in order.split(BATCH) if len(part) > 1]
        randomness = IsolatedRandomState(derive_seed(seed, epoch, 1), samples.device)
        with randomness.active(), explain_out_of_memory():
            for part, taken in zip(parts, stream_batches(samples, parts), strict=True):
                chosen = part.to(samples.device)
                logits = answer(taken)
                uniform = 1 - torch.rand_like(prior[chosen])  # above 0
                loss = calibration_loss(autoencoder, logits, said[chosen], prior[chosen], uniform)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.detach()
        if not math.isfinite(total.item()):
            raise divergence_error(total.item() / len(samples), epoch, RATE)


def _answers(network: nn.Module, samples: Batches, *, bfloat16: bool) -> Callable[[Tensor], Tensor]:
    """Return what computes logits; on a GPU whole batches go through a CUDA graph.

    Launching the kernels of a small batch one by one takes longer than they do.
    """

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
        # Inside another: a module that has hooks itself is refused.
        graphed: Any = torch.cuda.make_graphed_callables(nn.Sequential(network), (example,))
    for name, value in network.named_buffers():
        value.copy_(before[name])  # warming up has moved the means of batch norms
    return lambda taken: graphed(taken).float() if len(taken) == BATCH else plain(taken)


def _check_predictions(predicted: NDArray[np.intp]) -> None:
    if (predicted == predicted[0]).all():
        raise PredictionError(
            f"the network predicts class {predicted[0]} for all {len(predicted)} training samples: "
            "there is nothing to calibrate. Was it trained?"
        )
