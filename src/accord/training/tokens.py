"""Texts as tokens, by the tokenizer that belongs to a network of transformers."""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, ExtraMissing


def tokenize(
    texts: Sequence[str] | Sequence[tuple[str, str]], *, network: str, length: int
) -> NDArray[np.int32]:
    """Return each text as tokens, (sample, part, token), filled up to the longest.

    The parts are the token, whether it counts and, for pairs, which text it belongs to.

    Raises:
        ChoiceError: the network's folder or name holds no tokenizer.
        ExtraMissing: transformers is not installed.
    """
    tokenizer = _load_tokenizer(network.partition(":")[2])
    pairs = isinstance(texts[0], tuple)
    columns = [list(column) for column in zip(*texts, strict=True)] if pairs else [list(texts)]
    found = tokenizer(
        *columns,
        truncation=True,
        max_length=length,
        padding="longest",
        return_token_type_ids=pairs,
        return_tensors="np",
    )
    parts = ("input_ids", "attention_mask", *(("token_type_ids",) if pairs else ()))
    return np.stack([found[part] for part in parts], axis=1).astype(np.int32)


def _load_tokenizer(path: str) -> Any:
    try:
        transformers = importlib.import_module("transformers")
    except ImportError as error:
        raise ExtraMissing(
            f"texts need transformers, which cannot be imported here: {error}. "
            "To install it: pip install 'accord[transformers]'"
        ) from error
    try:
        return transformers.AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise ChoiceError(
            f"transformers:{path} holds no tokenizer that can be loaded: {error}"
        ) from error
