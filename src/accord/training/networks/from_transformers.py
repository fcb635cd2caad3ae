"""Networks of transformers, where it is installed."""

import importlib
from collections.abc import Mapping
from typing import Any, Final, Literal

from torch import Tensor, nn

from accord.errors import ChoiceError, ExtraMissing, PredictionError

PARTS: Final = ("input_ids", "attention_mask", "token_type_ids")
_KINDS: Final = {
    "text": "AutoModelForSequenceClassification",
    "image": "AutoModelForImageClassification",
}


class TransformersNetwork(nn.Module):
    """Returns the logits of a network of transformers, whatever else that returns.

    Args:
        network: what `from_pretrained` gave.
        padding: the token that fills up a text, hidden from the network's attention.
    """

    def __init__(self, network: nn.Module, *, padding: int) -> None:
        super().__init__()
        self.network = network
        self.padding = padding

    def forward(self, inputs: Tensor | Mapping[str, Tensor]) -> Tensor:
        """Return the logits, (sample, class).

        Args:
            inputs: tokens (sample, token); or (sample, part, token) with the token, whether it
                counts, and which of two texts it belongs to; or images (sample, channel, row,
                column); or what the network takes, by name.
        """
        logits: Tensor = self.network(**self._name(inputs)).logits
        return logits

    def _name(self, inputs: Tensor | Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        if not isinstance(inputs, Tensor):
            return inputs
        if inputs.is_floating_point():
            return {"pixel_values": inputs}
        if inputs.ndim == 2:
            return {"input_ids": inputs, "attention_mask": (inputs != self.padding).long()}
        if inputs.ndim == 3 and inputs.shape[1] <= len(PARTS):
            return dict(zip(PARTS, inputs.unbind(dim=1), strict=False))
        raise PredictionError(
            "texts must be tokens (sample, token), or (sample, part, token) with up to "
            f"{len(PARTS)} parts ({', '.join(PARTS)}); got {tuple(inputs.shape)}."
        )


def build_transformers(
    path: str, *, classes: int, task: Literal["text", "image"] = "text", scratch: bool = False
) -> TransformersNetwork:
    """Build a classifier on the network that a folder, or a name on the hub, holds.

    Args:
        path: a folder that `save_pretrained` wrote, or a name on the hub.
        classes: how many classes to tell apart; the head is new where theirs differ.
        task: what the network reads.
        scratch: whether to take the shape alone, and draw all weights.
    """
    if task not in _KINDS:
        raise ChoiceError(f"task must be one of {', '.join(_KINDS)}; got {task!r}.")
    transformers = _import_transformers(path)
    kind = getattr(transformers, _KINDS[task])
    try:
        facts = transformers.AutoConfig.from_pretrained(path, num_labels=classes)
        if scratch:
            network = kind.from_config(facts)
        else:
            network = kind.from_pretrained(path, config=facts, ignore_mismatched_sizes=True)
    except (OSError, ValueError) as error:
        raise ChoiceError(
            f"transformers:{path} cannot be loaded as a network for {task}s. Is it a folder that "
            f"save_pretrained wrote, or a name that the hub can give? transformers says: {error}"
        ) from error
    padding = getattr(facts, "pad_token_id", None)
    # In float32, whatever the file's precision, and ready to train: it comes ready to predict.
    return TransformersNetwork(network.float().train(), padding=0 if padding is None else padding)


def _import_transformers(path: str) -> Any:
    try:
        return importlib.import_module("transformers")
    except ImportError as error:
        raise ExtraMissing(
            f"transformers:{path} needs transformers, which cannot be imported here: {error}. "
            "To install it: pip install 'accord[transformers]'"
        ) from error
