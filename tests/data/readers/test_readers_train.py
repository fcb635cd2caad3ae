"""Every listed reader feeds a network for one step."""

import json

import numpy as np
import pytest
import torch
from torch import nn

import accord
from accord.data import READERS, read_dataset
from accord.training import _build_networks as members
from accord.training import _prepared_data as material
from accord.training import parse_spec, train


def tokens_of_words(texts, *, network, length):
    """Tokenize texts by the lengths of their words."""
    words = [" ".join(text if isinstance(text, tuple) else (text,)).split() for text in texts]
    tokens = np.zeros((len(texts), 2, length), np.int32)
    for sample, lengths in enumerate(words):
        some = [len(word) for word in lengths][:length]
        tokens[sample, 0, : len(some)] = some
        tokens[sample, 1, : len(some)] = 1
    return tokens


class WordLengths(nn.Module):
    """A network for tokens of `tokens_of_words`."""

    def __init__(self, *, classes, **_):
        super().__init__()
        self.head = nn.Linear(1, classes)

    def forward(self, tokens):
        return self.head(tokens[:, 0].float().mean(dim=1, keepdim=True))


NETWORKS = {"image": ("small-cnn", "{ width = 2 }"), "table": ("mlp", "{ widths = [4] }")}
TEXT = ("transformers:none", "{}")


@pytest.mark.parametrize("kind", READERS)
def test_every_reader_feeds_a_network(kind, tree, tmp_path, monkeypatch):
    path, options = tree(kind)
    what = read_dataset(kind, path, **options).kind
    if what == "text":
        monkeypatch.setattr(material, "tokenize", tokens_of_words)
        monkeypatch.setattr(members, "build", lambda _, **sizes: WordLengths(**sizes))
    name, widths = NETWORKS.get(what, TEXT)
    lines = [f"{key} = {json.dumps(value)}" for key, value in options.items()]
    if path is not None:
        lines.append(f'path = "{path}"')
    text = "\n".join(
        [
            'name = "one-step"',
            "[data]",
            f'kind = "{kind}"',
            *lines,
            "[train]",
            "networks = 1",
            f'network = "{name}"',
            f"options = {widths}",
            "epochs = 1",
            "batch = 4096",
            "length = 8",
        ]
    )
    torch.manual_seed(0)
    assert train(parse_spec(text), tmp_path / "run", source=text).failed == {}
    dataset = read_dataset(kind, path, **options)
    record = accord.open(tmp_path / "run/test")
    assert record.labels.shape == (1, 1, len(dataset.test))
    assert record.class_names == dataset.class_names
