"""Record from the Trainer of transformers: one callback, twice per epoch.

A text has nine words out of twelve. Six of the twelve are good and six are bad; the class is the
kind that occurs more often.
"""

from typing import Any

import numpy as np
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    Trainer,
    TrainingArguments,
    set_seed,
)

import accord
from accord.data.noise import symmetric_noise
from accord.transformers import RecordPredictions

words = np.random.default_rng(0).integers(0, 12, (1500, 9))
truth = ((words < 6).sum(axis=1) > 4).astype(int)
given = symmetric_noise(truth, rate=0.2, classes=2, seed=0)


def texts(chosen: slice) -> list[dict[str, Any]]:
    pairs = zip(words[chosen].tolist(), given[chosen].tolist(), strict=True)
    return [{"input_ids": text, "labels": label} for text, label in pairs]


train_texts, test_texts = texts(slice(1000)), texts(slice(1000, None))
config = BertConfig(
    vocab_size=12,
    hidden_size=32,
    initializer_range=0.2,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
)

for number in range(2):
    record = RecordPredictions(
        "transformers-record", test_texts, network=number, classes=2, truth=truth[1000:], every=0.5
    )
    arguments = TrainingArguments(
        "transformers-checkpoints",
        num_train_epochs=4,
        per_device_train_batch_size=50,
        per_device_eval_batch_size=250,
        learning_rate=3e-3,
        save_strategy="no",
        report_to=[],
    )
    set_seed(number)
    network = AutoModelForSequenceClassification.from_config(config)
    Trainer(network, arguments, train_dataset=train_texts, callbacks=[record]).train()

for score in accord.open("transformers-record").score():
    print(f"{score.rule:18} {100 * score.accuracy:.1f}")
