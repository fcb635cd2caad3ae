"""Samples are shown to a network as its own run showed them."""

from types import SimpleNamespace

import pytest
import torch

from accord.data import InputSchema
from accord.inference import _evaluate as asking
from accord.training.spec import network_specs, parse_spec


@pytest.mark.parametrize(("kind", "below_root"), [("text", True), ("table", False)])
def test_texts_are_cut_by_the_tokenizer_that_lies_below_the_root(
    tmp_path, monkeypatch, kind, below_root
):
    (tmp_path / "tiny").mkdir()
    spec = parse_spec(
        f'name = "x"\nroot = "{tmp_path}"\ndata = {{ kind = "sst2", path = "sst2" }}\n'
        '[train]\nnetwork = "transformers:tiny"\nepochs = 1\nlength = 7\n'
    )
    run = SimpleNamespace(spec=spec, traits=InputSchema(kind, ("bad", "good"), 1, (1, 1), 10))
    asked = []
    monkeypatch.setattr(asking, "make_batches", lambda *_, **sample_info: asked.append(sample_info))
    shown = asking.Shown(["fine"], run, torch.device("cpu"))
    for member in network_specs(spec):
        shown.to(member)
    (sample_info,) = asked
    assert sample_info["network"] == (f"transformers:{tmp_path / 'tiny'}" if below_root else "")
    assert sample_info["length"] == 7
