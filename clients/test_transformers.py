"""Train a classifier of texts with the real transformers: a tiny BERT with random weights."""

import numpy as np
import pytest
import torch

import accord
from accord.errors import SpecError
from accord.experiments.comparison import compare
from accord.training import parse_spec, train

transformers = pytest.importorskip("transformers", reason="pip install 'accord[transformers]'")

WORDS = ["good", "bad", "fine", "poor", "film", "plot", "very", "not"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A folder with a tiny network and its tokenizer, as save_pretrained writes them."""
    folder = tmp_path_factory.mktemp("bert")
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]))
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"))
    tokenizer.save_pretrained(folder)
    facts = transformers.BertConfig(
        vocab_size=13,  # with the mask that every such tokenizer has
        hidden_size=32,
        initializer_range=0.2,
        hidden_dropout_prob=0.1,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    torch.manual_seed(0)  # the network on disk has to be the same in every run
    transformers.BertForSequenceClassification(facts).save_pretrained(folder)
    return folder


def write_texts(folder, *, pairs=False):
    generator = np.random.default_rng(0)
    for name, count in (("train", 120), ("dev", 60)):
        lines = ["question\tsentence\tlabel" if pairs else "sentence\tlabel"]
        for _ in range(count):
            label = generator.integers(2)
            words = generator.choice(["film", "plot", "very"], generator.integers(2, 9)).tolist()
            words.insert(generator.integers(len(words)), ["bad", "good"][label])
            text = " ".join(words)
            named = ("not_entailment", "entailment")[label] if pairs else str(label)
            lines.append(f"film plot\t{text}\t{named}" if pairs else f"{text}\t{named}")
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")


def spec_for(bert, folder, kind):
    return f"""
name = "texts"
[data]
kind = "{kind}"
path = "{folder}"
complete = false
[noise]
kind = "symmetric"
rate = 0.2
[train]
networks = 2
network = "transformers:{bert}"
epochs = 8
batch = 16
length = 16
optimizer = {{ kind = "adamw", lr = 5e-3, weight_decay = 0.0 }}
schedule = {{ kind = "linear", warmup = 0.5 }}
[record]
every = 0.5
probabilities = true
"""


@pytest.mark.parametrize(("kind", "pairs"), [("sst2", False), ("qnli", True)])
def test_texts_and_pairs_of_texts_are_trained_and_recorded(bert, tmp_path, kind, pairs):
    write_texts(tmp_path, pairs=pairs)
    text = spec_for(bert, tmp_path, kind)
    assert train(parse_spec(text), tmp_path / "run", source=text).failed == {}
    record = accord.open(tmp_path / "run/test")
    assert record.epochs == 16
    assert record.progress[:2] == (0.5, 1.0)
    scores = {one.rule: one.accuracy for one in record.score()}
    # Not the majority: of two networks that differ, it takes the smaller class.
    assert scores["probability-average"] > 0.8, scores


def test_an_interrupted_training_of_texts_goes_on_to_the_same_bits(bert, tmp_path):
    write_texts(tmp_path)
    text = spec_for(bert, tmp_path, "sst2")

    class Stop(Exception):
        pass

    def stop(progress):
        if (progress.network, progress.epoch) == (1, 2.5):
            raise Stop

    with pytest.raises(Stop):
        train(parse_spec(text), tmp_path / "parts", source=text, progress=stop)
    for name in ("parts", "whole"):
        train(parse_spec(text), tmp_path / name, source=text)
    parts, whole = (np.asarray(accord.open(tmp_path / f"{name}/test").labels)
                    for name in ("parts", "whole"))  # fmt: skip
    np.testing.assert_array_equal(parts, whole)


def test_baselines_that_need_features_read_texts_too(bert, tmp_path, monkeypatch):
    monkeypatch.setattr("accord.baselines.npc.STEPS", 1)  # ten epochs will do
    write_texts(tmp_path)
    spec = parse_spec(spec_for(bert, tmp_path, "sst2"))
    rog, npc = compare(spec, tmp_path / "out", methods=["rog", "npc"]).methods
    assert (rog.failures, npc.failures) == ((), ())
    assert rog.accuracy > 0.6, rog


def test_other_networks_are_refused_for_texts(bert, tmp_path):
    write_texts(tmp_path)
    text = spec_for(bert, tmp_path, "sst2").replace(f"transformers:{bert}", "resnet18")
    with pytest.raises(SpecError, match=r"texts require a network of transformers.*got 'resnet18'"):
        train(parse_spec(text), tmp_path / "run", source=text)
