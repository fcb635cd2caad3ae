"""Contract tests for rules and storage."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from accord.rules import ABSTAINED, Prediction, Rule
from accord.store import ArrayReader, SampleInfo, Storage
from accord.store import _record_reader as reader_module


class StorageContract(ABC):
    """Base class for tests of `Storage` classes.

    >>> from accord.store import Folder
    >>> import tempfile
    >>> from pathlib import Path
    >>> class TestFolder(StorageContract):
    ...     def make_storage(self):
    ...         return Folder(Path(tempfile.mkdtemp()))
    """

    @abstractmethod
    def make_storage(self) -> Storage:
        """Create an empty storage."""

    def test_new_storage_is_empty(self) -> None:
        storage = self.make_storage()
        assert storage.get("a/b") is None
        assert storage.children() == []
        assert storage.children("a") == []

    def test_get_returns_the_last_value_put(self) -> None:
        storage = self.make_storage()
        storage.put("a/b", b"one")
        storage.put("a/b", b"two")
        storage.put("empty", b"")
        assert storage.get("a/b") == b"two"
        assert storage.get("empty") == b""

    def test_create_never_overwrites(self) -> None:
        storage = self.make_storage()
        assert storage.create("a", b"first")
        assert not storage.create("a", b"second")
        assert storage.get("a") == b"first"

    def test_removed_keys_are_gone(self) -> None:
        storage = self.make_storage()
        for key in ("a/b", "a/c"):
            storage.put(key, b"x")
        for flush in (False, True):
            storage.remove("a/b", flush=flush)
        assert storage.get("a/b") is None
        assert storage.children("a") == ["c"]
        storage.remove("a/c", flush=True)
        assert storage.children() == []
        assert storage.create("a/c", b"again")

    def test_children_are_the_names_directly_below(self) -> None:
        storage = self.make_storage()
        for key in ("b/c/d", "b/c/e", "b/f", "a"):
            storage.put(key, b"x")
        assert storage.children() == ["a", "b"]
        assert storage.children("b") == ["c", "f"]
        assert storage.children("b/c") == ["d", "e"]

    def test_one_of_several_creators_wins(self) -> None:
        storage = self.make_storage()
        won: list[bytes] = []

        def create(data: bytes) -> None:
            if storage.create("contested", data):
                won.append(data)

        threads = [threading.Thread(target=create, args=(b"%d" % i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [storage.get("contested")] == won


_settings = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.differing_executors]
)


@dataclass(frozen=True)
class SmallRecord:
    """Container for the arrays of a small record."""

    labels: NDArray[Any]  # (network, epoch, sample)
    probabilities: NDArray[Any]  # (network, epoch, sample, class)
    truth: NDArray[Any]  # (sample,)
    classes: int


@st.composite
def small_records(draw: st.DrawFn) -> SmallRecord:
    """Generate small records with many ties."""
    networks, epochs, samples = (draw(st.integers(1, most)) for most in (4, 5, 6))
    classes = draw(st.integers(1, 5))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    labels = generator.integers(0, classes, (networks, epochs, samples)).astype(np.uint8)
    # Eighths are exact in half precision, so that ties are exact.
    eighths = generator.multinomial(8, np.full(classes, 1 / classes), labels.shape)
    truth = generator.integers(0, classes, samples).astype(np.uint8)
    return SmallRecord(labels, (eighths / 8).astype(np.float16), truth, classes)


def reader_of(record: SmallRecord) -> ArrayReader:
    sample_info = SampleInfo(record.labels.shape[2], record.classes, truth=record.truth)
    return ArrayReader(record.labels, sample_info, probabilities=record.probabilities)


def reordered(
    record: SmallRecord, *, networks: NDArray[Any] | None = None, epochs: NDArray[Any] | None = None
) -> SmallRecord:
    by = slice(None) if networks is None else networks
    at = slice(None) if epochs is None else epochs
    return replace(
        record, labels=record.labels[by][:, at], probabilities=record.probabilities[by][:, at]
    )


class RuleContract:
    """Base class for tests of rules.

    Subclasses set `rule`, and define it in plain Python as `by_definition`: slow, obvious, and
    independent of the rule's code. Tests that do not apply to a rule, by its attributes, are
    skipped.
    """

    rule: ClassVar[Rule]

    def by_definition(self, record: SmallRecord) -> Sequence[int]:
        """Compute one label per sample in plain Python."""
        raise NotImplementedError(f"{type(self).__name__} does not define by_definition(record)")

    def predict(self, record: SmallRecord) -> Prediction:
        """Apply the rule under test."""
        return self.rule(reader_of(record))

    @_settings
    @given(small_records())
    def test_equals_its_definition(self, record: SmallRecord) -> None:
        expected = self.by_definition(record)
        np.testing.assert_array_equal(self.predict(record).labels, expected)

    @_settings
    @given(small_records())
    def test_every_sample_gets_a_class_or_abstains(self, record: SmallRecord) -> None:
        predicted = self.predict(record)
        assert predicted.labels.shape == predicted.scores.shape == record.truth.shape
        assert predicted.labels.min() >= ABSTAINED
        assert predicted.labels.max() < record.classes
        assert predicted.scores.min() >= 0
        assert predicted.scores.max() <= 1

    @_settings
    @given(small_records(), st.randoms(use_true_random=False))
    def test_the_order_of_networks_has_no_effect(self, record: SmallRecord, random: Any) -> None:
        if not self.rule.symmetric:
            pytest.skip("the rule treats networks differently")
        order = np.array(random.sample(range(record.labels.shape[0]), record.labels.shape[0]))
        self._same(self.predict(record), self.predict(reordered(record, networks=order)))

    @_settings
    @given(small_records(), st.randoms(use_true_random=False))
    def test_the_order_of_epochs_has_no_effect(self, record: SmallRecord, random: Any) -> None:
        if self.rule.oracle or self.rule.ordered:  # an oracle takes the first of equal epochs
            pytest.skip("the rule depends on the order of epochs")
        epochs = record.labels.shape[1]
        order = np.array(random.sample(range(epochs), epochs))
        if self.rule.reads == "last":
            order = np.array([epochs - 1])
        self._same(self.predict(record), self.predict(reordered(record, epochs=order)))

    @_settings
    @given(small_records())
    def test_blocks_of_samples_give_the_same_result(self, record: SmallRecord) -> None:
        whole = self.predict(record)
        before = reader_module.BLOCK_BYTES, reader_module.LEAST_BLOCK
        reader_module.BLOCK_BYTES, reader_module.LEAST_BLOCK = 1, 1  # type: ignore[misc]
        try:
            self._same(whole, self.predict(record))
        finally:
            reader_module.BLOCK_BYTES, reader_module.LEAST_BLOCK = before  # type: ignore[misc]

    @_settings
    @given(small_records())
    def test_after_each_epoch_equals_the_rule_on_the_epochs_so_far(
        self, record: SmallRecord
    ) -> None:
        reader = reader_of(record)
        blocks = self.rule.after_each_epoch(reader)
        running = np.concatenate([block.values for block in blocks], axis=1)
        for epoch in range(reader.epochs):
            expected = self.rule(reader.select(epochs=range(epoch + 1))).labels
            np.testing.assert_array_equal(running[epoch], expected)

    @staticmethod
    def _same(first: Prediction, second: Prediction) -> None:
        np.testing.assert_array_equal(first.labels, second.labels)
        np.testing.assert_array_equal(first.scores, second.scores)
