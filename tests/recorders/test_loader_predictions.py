"""Nested batches move to the device completely."""

from typing import Any, NamedTuple

import torch

from accord._recorders.loader_predictions import to_device

META = torch.device("meta")  # available on every machine


class Pair(NamedTuple):
    left: Any
    right: Any


class Movable:
    def to(self, device):
        return f"moved to {device}"


def test_every_tensor_of_a_batch_is_moved():
    one = torch.zeros(2)
    batch = {"a": one, "b": [one, (one, Pair(one, "text"))], "c": Movable(), "d": 3}
    moved = to_device(batch, META)
    assert moved["a"].device == META
    assert type(moved["b"]) is list
    first, (second, pair) = moved["b"]
    assert first.device == second.device == pair.left.device == META
    assert type(pair) is Pair
    assert (pair.right, moved["c"], moved["d"]) == ("text", "moved to meta", 3)
    assert one.device.type == "cpu"
