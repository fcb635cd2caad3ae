"""Commands read each stored row once, and call it a few frames deep."""

import numpy as np
import pytest
from overfitting import memorised
from profiled import deepest_chain, rows_opened

import accord
from accord.cli.app import run
from accord.rules import dawid_skene

COMMANDS = {
    "score": ["score", "--json"],
    "watch": ["watch", "--json"],
    "predict": ["predict"],
    "recommended": ["predict", "--rule", "recommended"],
    "trust": ["trust", "--json"],
    "report": ["report"],
}


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """An unpacked record of networks that overfit, with true and given labels."""
    path = tmp_path_factory.mktemp("reads") / "record"
    drawn = memorised(networks=3)
    truth = drawn.truth()
    given = np.where(np.arange(len(truth)) % 5 == 0, (truth + 1) % 10, truth)
    labels = drawn.read_labels(range(3), range(40), slice(None))
    for network in range(3):
        options = {"samples": len(truth), "classes": 10, "truth": truth, "given": given}
        with accord.Recorder(path, network=network, **options) as recorder:
            for row in labels[network]:
                recorder.record(row)
    return path


@pytest.fixture
def call(record, tmp_path, capsys):
    def call(command):
        name, *options = COMMANDS[command]
        out = ["--out", str(tmp_path / "page.html")] if command == "report" else []
        assert run([name, str(record), *options, *out]) == 0
        capsys.readouterr()

    return call


@pytest.mark.parametrize("command", COMMANDS)
def test_each_row_is_read_once(call, command, monkeypatch):
    with rows_opened(monkeypatch) as opened:
        call(command)
    assert len(opened) == 3 * 40
    assert set(opened.values()) == {1}


@pytest.mark.parametrize("command", COMMANDS)
def test_dawid_skene_is_fitted_once_for_each_selection(call, command, monkeypatch):
    fits, fit = [], dawid_skene.fit_dawid_skene

    def fit_counted(context, *options):
        fits.append((context.numbers, context.epochs))
        return fit(context, *options)

    for module in ("dawid_skene", "before_overfit", "_overfitting"):
        monkeypatch.setattr(f"accord.rules.{module}.fit_dawid_skene", fit_counted)
    call(command)
    assert len(fits) == len(set(fits))


@pytest.mark.parametrize(("command", "frames"), [("score", 12), ("predict", 15)])
def test_calls_nest_a_few_frames_deep(call, command, frames):
    call(command)  # loads modules, which would nest deeper
    chain = deepest_chain(lambda: call(command))
    assert len(chain) < frames, " > ".join(chain)  # one frame is `accord.cli.main`


def test_the_depth_is_that_of_accords_own_frames():
    chain = deepest_chain(lambda: accord.agreement(np.zeros((2, 2, 3), int), classes=2))
    assert chain[0].startswith("_predictions.")
    assert len(chain) > 2
