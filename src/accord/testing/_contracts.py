"""The contract that every rule is held to."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from accord.rules import ABSTAINED, Prediction, Rule
from accord.store import ArrayReader, SampleInfo
from accord.store import _record_reader as rows_module
from accord.store._storage import Storage


class StorageContract(ABC):
    """Inherit this in a test class and say how to make a fresh, empty place."""

    @abstractmethod
    def make_place(self) -> Storage:
        """Return a place with nothing in it."""

    def test_nothing_is_there_at_first(self) -> None:
        """A fresh place holds no key and no child."""
        place = self.make_place()
        assert place.get("a/b") is None
        assert place.children() == []
        assert place.children("a") == []

    def test_what_was_put_is_got(self) -> None:
        """The last bytes put under a key are there, empty ones too."""
        place = self.make_place()
        place.put("a/b", b"one")
        place.put("a/b", b"two")
        place.put("empty", b"")
        assert place.get("a/b") == b"two"
        assert place.get("empty") == b""

    def test_create_never_overwrites(self) -> None:
        """Only the first `create` of a key writes, and says so."""
        place = self.make_place()
        assert place.create("a", b"first")
        assert not place.create("a", b"second")
        assert place.get("a") == b"first"

    def test_children_are_the_names_one_level_down(self) -> None:
        """Deeper names count once, by their first part."""
        place = self.make_place()
        for key in ("b/c/d", "b/c/e", "b/f", "a"):
            place.put(key, b"x")
        assert place.children() == ["a", "b"]
        assert place.children("b") == ["c", "f"]
        assert place.children("b/c") == ["d", "e"]

    def test_of_many_creators_one_wins(self) -> None:
        """Eight threads create one key; exactly one is told that it wrote."""
        place = self.make_place()
        won: list[bytes] = []

        def create(data: bytes) -> None:
            if place.create("contested", data):
                won.append(data)

        threads = [threading.Thread(target=create, args=(b"%d" % i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [place.get("contested")] == won


CLASSES = (1, 2, 3, 13, 256, 257, 100_000, 2**32)  # each side of what types or tables can hold
TYPES = (np.uint8, np.uint16, np.uint32, np.int64)


@st.composite
def labels_and_classes(
    draw: st.DrawFn, *, networks: int = 4, epochs: int = 4, samples: int = 6
) -> tuple[NDArray[np.integer], int]:
    """Draw labels (network, epoch, sample), up to so many of each, with how many classes exist.

    Only a few classes are voted for, so that ties are common. The type varies, as does
    the order in memory; some arrays are read-only.

    >>> from hypothesis import find
    >>> find(labels_and_classes(), lambda drawn: drawn[1] > 1)
    (array([[[0]]], dtype=uint8), 2)
    """
    classes = draw(st.sampled_from(CLASSES))
    voted = draw(st.lists(st.integers(0, classes - 1), min_size=1, max_size=4))
    shape = tuple(draw(st.integers(1, most)) for most in (networks, epochs, samples))
    choice = draw(arrays(np.intp, shape, elements=st.integers(0, len(voted) - 1)))
    kind = draw(st.sampled_from([kind for kind in TYPES if np.iinfo(kind).max >= classes - 1]))
    return draw(_laid_out(np.array(voted, kind)[choice])), classes


def _laid_out(labels: NDArray[np.integer]) -> st.SearchStrategy[NDArray[np.integer]]:
    locked = labels.copy()
    locked.flags.writeable = False
    padded = np.repeat(labels, 2, axis=-1)[..., ::2]
    return st.sampled_from([labels, locked, padded, np.asfortranarray(labels)])


_settings = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.differing_executors]
)


@dataclass(frozen=True)
class SmallRecord:
    """A record as plain arrays, for a rule's slow definition."""

    labels: NDArray[Any]  # (network, epoch, sample)
    probabilities: NDArray[Any]  # (network, epoch, sample, class)
    truth: NDArray[Any]  # (sample,)
    classes: int


@st.composite
def small_records(draw: st.DrawFn) -> SmallRecord:
    """Draw a record small enough for a rule's slow definition, with many ties."""
    networks, epochs, samples = (draw(st.integers(1, most)) for most in (4, 5, 6))
    classes = draw(st.integers(1, 5))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    labels = generator.integers(0, classes, (networks, epochs, samples)).astype(np.uint8)
    # Eighths are exact in half precision, so that equal support is equal to the last bit.
    eighths = generator.multinomial(8, np.full(classes, 1 / classes), labels.shape)
    truth = generator.integers(0, classes, samples).astype(np.uint8)
    return SmallRecord(labels, (eighths / 8).astype(np.float16), truth, classes)


def rows_of(record: SmallRecord) -> ArrayReader:
    """Return a small record as rows."""
    sample_info = SampleInfo(record.labels.shape[2], record.classes, truth=record.truth)
    return ArrayReader(record.labels, sample_info, probabilities=record.probabilities)


def reordered(
    record: SmallRecord, *, networks: NDArray[Any] | None = None, epochs: NDArray[Any] | None = None
) -> SmallRecord:
    """Return a record with its networks or its epochs in another order."""
    by = slice(None) if networks is None else networks
    at = slice(None) if epochs is None else epochs
    return replace(
        record, labels=record.labels[by][:, at], probabilities=record.probabilities[by][:, at]
    )


class RuleContract:
    """Inherit this in a test class, name the rule and define it.

    `by_definition` is the rule in plain Python: slow, obvious, and without calls of the rule.
    """

    rule: ClassVar[Rule]

    def by_definition(self, record: SmallRecord) -> Sequence[int]:
        """Return one label per sample, as the rule is defined."""
        raise NotImplementedError(f"{type(self).__name__} defines no by_definition(record)")

    def predict(self, record: SmallRecord) -> Prediction:
        """Predict with the rule under test."""
        return self.rule(rows_of(record))

    @_settings
    @given(small_records())
    def test_equals_its_definition(self, record: SmallRecord) -> None:
        """Fast and slow agree on every sample, ties included."""
        expected = self.by_definition(record)
        np.testing.assert_array_equal(self.predict(record).labels, expected)

    @_settings
    @given(small_records())
    def test_gives_every_sample_a_class_or_abstains(self, record: SmallRecord) -> None:
        """Labels lie in -1..classes-1 and scores in 0..1, one for each sample."""
        predicted = self.predict(record)
        assert predicted.labels.shape == predicted.scores.shape == record.truth.shape
        assert predicted.labels.min() >= ABSTAINED
        assert predicted.labels.max() < record.classes
        assert predicted.scores.min() >= 0
        assert predicted.scores.max() <= 1

    @_settings
    @given(small_records(), st.randoms(use_true_random=False))
    def test_the_order_of_networks_is_without_effect(
        self, record: SmallRecord, random: Any
    ) -> None:
        """Unless the rule says that it is not symmetric."""
        if not self.rule.symmetric:
            return
        order = np.array(random.sample(range(record.labels.shape[0]), record.labels.shape[0]))
        self._same(self.predict(record), self.predict(reordered(record, networks=order)))

    @_settings
    @given(small_records(), st.randoms(use_true_random=False))
    def test_the_order_of_epochs_matters_only_as_the_rule_says(
        self, record: SmallRecord, random: Any
    ) -> None:
        """A rule reads the last epoch alone or all, those in any order unless it says not."""
        epochs = record.labels.shape[1]
        order = np.array(random.sample(range(epochs), epochs))
        if self.rule.reads == "last":
            order = np.array([epochs - 1])
        # An oracle takes the first of equally good epochs.
        if not self.rule.oracle and not self.rule.ordered:
            self._same(self.predict(record), self.predict(reordered(record, epochs=order)))

    @_settings
    @given(small_records())
    def test_blocks_together_are_the_whole(self, record: SmallRecord) -> None:
        """Streaming sample by sample gives what one block gives."""
        whole = self.predict(record)
        before = rows_module.BLOCK_BYTES, rows_module.LEAST_BLOCK
        rows_module.BLOCK_BYTES, rows_module.LEAST_BLOCK = 1, 1  # type: ignore[misc]
        try:
            self._same(whole, self.predict(record))
        finally:
            rows_module.BLOCK_BYTES, rows_module.LEAST_BLOCK = before  # type: ignore[misc]

    @_settings
    @given(small_records())
    def test_after_each_epoch_it_is_the_rule_on_the_epochs_so_far(
        self, record: SmallRecord
    ) -> None:
        """The fast running form equals applying the rule again and again."""
        rows = rows_of(record)
        blocks = self.rule.after_each_epoch(rows)
        running = np.concatenate([block.values for block in blocks], axis=1)
        for epoch in range(rows.epochs):
            expected = self.rule(rows.select(epochs=range(epoch + 1))).labels
            np.testing.assert_array_equal(running[epoch], expected)

    @staticmethod
    def _same(first: Prediction, second: Prediction) -> None:
        np.testing.assert_array_equal(first.labels, second.labels)
        np.testing.assert_array_equal(first.scores, second.scores)
