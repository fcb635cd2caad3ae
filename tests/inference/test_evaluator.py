"""Samples become inputs of a network as in its own run."""

from types import SimpleNamespace

import pytest

from accord.data import InputSchema
from accord.inference import _evaluator
from accord.training import network_specs, parse_spec


@pytest.mark.parametrize(("kind", "below_root"), [("text", True), ("table", False)])
def test_texts_are_tokenized_by_the_folder_below_the_root_of_the_spec(
    tmp_path, monkeypatch, kind, below_root
):
    (tmp_path / "tiny").mkdir()
    spec = parse_spec(
        f'name = "x"\nroot = "{tmp_path}"\ndata = {{ kind = "sst2", path = "sst2" }}\n'
        '[train]\nnetwork = "transformers:tiny"\nepochs = 1\nlength = 7\n'
    )
    schema = InputSchema(kind, ("bad", "good"), 1, (1, 1), 10)
    checkpoints = SimpleNamespace(run=SimpleNamespace(spec=spec), schema=schema)
    calls = []
    monkeypatch.setattr(_evaluator, "make_batches", lambda *_, **options: calls.append(options))
    evaluator = _evaluator.Evaluator(checkpoints)
    evaluator.begin(["fine"])
    for network in network_specs(spec):
        evaluator.batches(network)
    (options,) = calls  # once for all networks
    assert options["network"] == (f"transformers:{tmp_path / 'tiny'}" if below_root else "")
    assert options["length"] == 7
