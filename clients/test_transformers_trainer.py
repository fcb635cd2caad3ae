"""Record with the real Trainer of transformers: a tiny BERT with random weights."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, IterableDataset

import accord
from accord.errors import ChoiceError, PredictionError, RecordBusy, RecordError
from accord.transformers import RecordPredictions, _AcceptedColumns

transformers = pytest.importorskip("transformers", reason="pip install 'accord[transformers]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the Trainer and of torch's loaders

WORDS = ["good", "bad", "fine", "poor", "film", "plot", "very", "not"]
SAMPLES, STEPS = 22, 5


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    vocabulary = tmp_path_factory.mktemp("bert") / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    return transformers.BertTokenizerFast(str(vocabulary))


class Texts(Dataset):
    """Items of a typical script: lists of any length, and a column that no network accepts."""

    def __init__(self, tokenizer, samples, *, seed, pairs=False):
        generator = np.random.default_rng(seed)
        texts = [
            " ".join(generator.choice(WORDS, generator.integers(2, 9))) for _ in range(samples)
        ]
        questions = [texts[::-1]] if pairs else []
        self.tokens = tokenizer(texts, *questions)
        self.texts = texts
        self.labels = [int("good" in text) for text in texts]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, position):
        tokens = {name: values[position] for name, values in self.tokens.items()}
        return {**tokens, "label": self.labels[position], "text": self.texts[position]}


def build():
    torch.manual_seed(0)
    facts = transformers.BertConfig(
        vocab_size=13,
        hidden_size=16,
        initializer_range=0.3,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    return transformers.BertForSequenceClassification(facts)


class Witness(transformers.TrainerCallback):
    """What the network predicts after each step, computed directly."""

    def __init__(self, dataset):
        self.labels = {}
        items = [dataset[position] for position in range(len(dataset))]
        self.inputs = {
            name: pad_sequence([torch.tensor(item[name]) for item in items], batch_first=True)
            for name in ("input_ids", "attention_mask", "token_type_ids")
        }

    def on_step_end(self, args, state, control, model=None, **_):
        model.eval()
        with torch.no_grad():
            self.labels[state.global_step] = model(**self.inputs).logits.argmax(1).tolist()
        model.train()


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more would slow down so small a network
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def train(tokenizer, tmp_path):
    def run(callbacks, *, pairs=False, checkpoint=None, network=None, **options):
        arguments = transformers.TrainingArguments(
            **{
                "output_dir": str(tmp_path / "saved"),
                "per_device_train_batch_size": 8,
                "per_device_eval_batch_size": 6,
                "num_train_epochs": 3,
                "learning_rate": 1e-2,
                "use_cpu": True,
                "report_to": [],
                "save_strategy": "no",
                "logging_strategy": "no",
                "disable_tqdm": True,
                **options,
            }
        )
        trainer = transformers.Trainer(
            model=network or build(),
            args=arguments,
            train_dataset=Texts(tokenizer, 8 * STEPS, seed=1, pairs=pairs),
            data_collator=transformers.DataCollatorWithPadding(tokenizer),
            callbacks=callbacks,
        )
        trainer.train(resume_from_checkpoint=checkpoint)
        return trainer.model

    return run


@pytest.fixture
def held(tokenizer):
    return Texts(tokenizer, SAMPLES, seed=2)


def record_to(path, dataset, **options):
    return RecordPredictions(path, dataset, **{"network": 0, "classes": 2, **options})


def rows(path):
    return np.asarray(accord.open(path).labels)[0].tolist()


@pytest.mark.parametrize("pairs", [False, True])
def test_every_epoch_is_recorded_as_the_network_was(train, tokenizer, tmp_path, pairs):
    held = Texts(tokenizer, SAMPLES, seed=2, pairs=pairs)
    witness = Witness(held)
    callback = record_to(tmp_path / "record", held, truth=held.labels)
    train([callback, witness], pairs=pairs)
    record = accord.open(tmp_path / "record")
    assert record.progress == (1.0, 2.0, 3.0)
    steps = [STEPS, 2 * STEPS, 3 * STEPS]
    assert rows(tmp_path / "record") == [witness.labels[step] for step in steps]
    assert [one["step"] for one in record.networks_info[0].metrics] == steps
    assert record.truth.tolist() == held.labels


def test_parts_of_an_epoch_are_recorded(train, held, tmp_path):
    witness = Witness(held)
    path = tmp_path / "record"
    train([record_to(path, held, every=0.2, probabilities=True), witness], num_train_epochs=2)
    progress = accord.open(path).progress
    assert progress == pytest.approx([step / STEPS for step in range(1, 2 * STEPS + 1)])
    assert rows(path) == list(witness.labels.values())


def test_the_last_epoch_is_recorded_between_multiples(train, held, tmp_path):
    witness, path = Witness(held), tmp_path / "record"
    train([record_to(path, held, every=2), witness], num_train_epochs=5)
    assert accord.open(path).progress == (2, 4, 5)
    assert rows(path) == [witness.labels[STEPS * epoch] for epoch in (2, 4, 5)]


def test_the_last_epoch_is_recorded_after_early_stopping(train, held, tmp_path):
    class Stop(transformers.TrainerCallback):
        def on_epoch_end(self, args, state, control, **_):
            control.should_training_stop = state.epoch >= 3

    witness, path = Witness(held), tmp_path / "record"
    train([record_to(path, held, every=2), witness, Stop()], num_train_epochs=9)
    assert accord.open(path).progress == (2, 3)
    assert rows(path) == [witness.labels[STEPS * epoch] for epoch in (2, 3)]


def test_columns_that_the_network_does_not_take_are_left_out(train, held, tokenizer, tmp_path):
    collate = transformers.DataCollatorWithPadding(tokenizer)  # the text itself cannot be padded
    witness = Witness(held)
    path = tmp_path / "record"
    train([record_to(path, held, collate=collate, batch=4), witness], num_train_epochs=1)
    assert rows(path) == [witness.labels[STEPS]]

    class Adapter:
        def forward(self, *args, **kwargs):
            raise AssertionError

        def get_base_model(self):
            return build()

    (item,) = _AcceptedColumns(lambda items: items, Adapter())([held[0]])
    assert set(item) == {"input_ids", "attention_mask", "token_type_ids", "label"}
    assert _AcceptedColumns(lambda items: items, build())(["text"]) == ["text"]


def test_accumulated_gradients_are_one_step(train, held, tmp_path):
    path = tmp_path / "record"
    train([record_to(path, held, every=0.5)], gradient_accumulation_steps=2)
    assert accord.open(path).progress == pytest.approx((0.8, 1, 1.8, 2, 2.8, 3))


def test_recording_does_not_change_what_is_trained(train, held, tmp_path):
    found = train([record_to(tmp_path / "record", held, every=0.2)]).state_dict()
    for name, value in train([]).state_dict().items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=0)


def test_mixed_precision_is_the_trainers(train, held, tmp_path):
    seen = set()

    def forward(network, batch):
        network.classifier.register_forward_hook(lambda *parts: seen.add(parts[-1].dtype))
        return network(**{name: values for name, values in batch.items() if name != "labels"})

    train([record_to(tmp_path / "record", held, forward=forward)], bf16=True, num_train_epochs=1)
    assert accord.open(tmp_path / "record").epochs == 1
    assert seen == {torch.bfloat16}


def test_resumed_training_has_every_row_once(train, held, tmp_path):
    path, saved = tmp_path / "record", tmp_path / "saved"
    every = {"every": 0.2}
    train([record_to(path, held, **every)], save_strategy="steps", save_steps=7, num_train_epochs=2)
    before = rows(path)
    witness = Witness(held)
    train([record_to(path, held, **every), witness], checkpoint=str(saved / "checkpoint-7"))
    assert accord.open(path).progress == pytest.approx(
        [step / STEPS for step in range(1, 3 * STEPS + 1)]
    )
    after = [witness.labels[step] for step in range(2 * STEPS + 1, 3 * STEPS + 1)]
    assert rows(path) == before + after


def test_a_checkpoint_ahead_of_the_record_is_refused(train, held, tmp_path):
    path = tmp_path / "record"
    train([], save_strategy="epoch", num_train_epochs=2)
    checkpoint = str(tmp_path / f"saved/checkpoint-{2 * STEPS}")
    with pytest.raises(
        RecordError, match=r"holds 0 epochs.*from progress 2: the row at progress 1 is missing"
    ):
        train([record_to(path, held)], checkpoint=checkpoint)
    train([record_to(path, held)], num_train_epochs=1)  # the record was closed
    assert accord.open(path).epochs == 1


def test_training_from_the_start_warns_about_rows_it_does_not_record(train, held, tmp_path, caplog):
    path = tmp_path / "record"
    train([record_to(path, held)], num_train_epochs=1)
    before = rows(path)
    train([record_to(path, held)], num_train_epochs=2)
    assert "network 0 already holds 1 epoch; training starts from scratch" in caplog.text
    assert rows(path)[:1] == before
    assert accord.open(path).epochs == 2


def test_attaching_it_twice_is_refused(train, held, tmp_path):
    callback = record_to(tmp_path / "record", held)
    with pytest.raises(ChoiceError, match="for network 0 is attached twice; attach it once"):
        train([callback, callback])
    callback.close()
    with pytest.raises(RecordBusy, match=r"another recorder holds.*is RecordPredictions attached"):
        train([callback, record_to(tmp_path / "record", held)])
    train([callback], num_train_epochs=1)  # opens it again
    assert accord.open(tmp_path / "record").epochs == 1


def test_the_end_of_training_and_close_release_the_record(train, held, tmp_path):
    callback = record_to(tmp_path / "record", held)
    train([callback], num_train_epochs=1)
    with accord.Recorder(tmp_path / "record", network=0, samples=SAMPLES, classes=2) as other:
        assert other.epochs == 1
    callback._recorder.open()
    callback.close()
    accord.Recorder(tmp_path / "record", network=0, samples=SAMPLES, classes=2).close()


def test_two_trainings_of_one_network_are_refused(train, held, tmp_path):
    with (
        accord.Recorder(tmp_path / "record", network=0, samples=SAMPLES, classes=2),
        pytest.raises(RecordBusy, match=r"another recorder holds this network.*callback\.close"),
    ):
        train([record_to(tmp_path / "record", held)])


def test_a_network_that_diverges_is_named_and_its_epochs_are_kept(train, held, tmp_path):
    path = tmp_path / "record"

    def diverge(network, batch):
        return network(input_ids=batch["input_ids"]).logits * float("nan")

    train([record_to(path, held)], num_train_epochs=1)
    with pytest.raises(
        PredictionError, match=r"network 0, epoch 1 \(progress 2\): .*NaN.*22 of 22 samples"
    ):
        train([record_to(path, held, forward=diverge)])
    train([record_to(path, held)], num_train_epochs=2)  # the record was closed
    assert accord.open(path).epochs == 2


def test_a_dataset_without_length_is_refused(tmp_path):
    class Stream(IterableDataset):
        def __iter__(self):
            yield {}

    with pytest.raises(ChoiceError, match="a map-style dataset with a length; got a Stream"):
        record_to(tmp_path, Stream())


# Two processes

SCRIPT = """
import os
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_transformers_trainer as here

folder = Path(sys.argv[2])
tokenizer = here.transformers.BertTokenizerFast(str(folder / "vocab.txt"))
held = here.Texts(tokenizer, 23, seed=2)  # not divisible by two
witness = here.Witness(held)
arguments = here.transformers.TrainingArguments(
    output_dir=str(folder / "saved"), per_device_train_batch_size=4, num_train_epochs=2,
    per_device_eval_batch_size=6, learning_rate=1e-2, use_cpu=True, report_to=[],
    save_strategy="no", logging_strategy="no", disable_tqdm=True,
)
here.transformers.Trainer(
    model=here.build(), args=arguments, train_dataset=here.Texts(tokenizer, 40, seed=1),
    data_collator=here.transformers.DataCollatorWithPadding(tokenizer),
    callbacks=[here.record_to(folder / "record", held), witness],
).train()
if arguments.process_index == 0:
    here.torch.save([witness.labels[step] for step in (5, 10)], folder / "expected.pt")
here.torch.distributed.barrier()  # a process that exits early kills the other
here.torch.distributed.destroy_process_group()
os._exit(0)  # torch's threads may abort while a process exits
"""


def test_two_processes_write_one_row_together(tokenizer, tmp_path):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
            *(tmp_path / "script.py", Path(__file__).parent, tmp_path),
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert rows(tmp_path / "record") == torch.load(tmp_path / "expected.pt")


def test_a_training_shorter_than_its_first_row_is_reported(train, held, tmp_path, caplog):
    train([RecordPredictions(tmp_path / "record", held, network=0, classes=2)], max_steps=2)
    words = "ended at progress 0.4, and the first row is due at 1. Train longer, or record more "
    assert words + "often: every=0.1" in caplog.text
