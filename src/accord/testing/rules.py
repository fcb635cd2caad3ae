"""The contract that every rule is held to."""

from typing import Any, ClassVar

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from accord.rules import ABSTAINED, Definition, Prediction, Rule
from accord.store import ArrayRows, Facts
from accord.store import rows as rows_module

_settings = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.differing_executors]
)


@st.composite
def small_records(draw: st.DrawFn) -> Definition:
    """Draw a record small enough for a rule's slow definition, with many ties."""
    networks, epochs, samples = (draw(st.integers(1, most)) for most in (4, 5, 6))
    classes = draw(st.integers(1, 5))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    labels = generator.integers(0, classes, (networks, epochs, samples)).astype(np.uint8)
    # Eighths are exact in half precision, so that equal support is equal to the last bit.
    eighths = generator.multinomial(8, np.full(classes, 1 / classes), labels.shape)
    truth = generator.integers(0, classes, samples).astype(np.uint8)
    return Definition(labels, (eighths / 8).astype(np.float16), truth, classes)


def rows_of(record: Definition) -> ArrayRows:
    """Return a small record as rows."""
    facts = Facts(record.labels.shape[2], record.classes, truth=record.truth)
    return ArrayRows(record.labels, facts, probabilities=record.probabilities)


def reordered(
    record: Definition, *, networks: NDArray[Any] | None = None, epochs: NDArray[Any] | None = None
) -> Definition:
    """Return a record with its networks or its epochs in another order."""
    by = slice(None) if networks is None else networks
    at = slice(None) if epochs is None else epochs
    return Definition(
        record.labels[by][:, at], record.probabilities[by][:, at], record.truth, record.classes
    )


class RuleContract:
    """Inherit this in a test class and name your rule."""

    rule: ClassVar[Rule]

    def predict(self, record: Definition) -> Prediction:
        """Predict with the rule under test."""
        return self.rule(rows_of(record))

    @_settings
    @given(small_records())
    def test_equals_its_definition(self, record: Definition) -> None:
        """Fast and slow agree on every sample, ties included."""
        expected = self.rule.by_definition(record)
        np.testing.assert_array_equal(self.predict(record).labels, expected)

    @_settings
    @given(small_records())
    def test_gives_every_sample_a_class_or_abstains(self, record: Definition) -> None:
        """Labels lie in -1..classes-1 and scores in 0..1, one for each sample."""
        predicted = self.predict(record)
        assert predicted.labels.shape == predicted.scores.shape == record.truth.shape
        assert predicted.labels.min() >= ABSTAINED
        assert predicted.labels.max() < record.classes
        assert predicted.scores.min() >= 0
        assert predicted.scores.max() <= 1

    @_settings
    @given(small_records(), st.randoms(use_true_random=False))
    def test_the_order_of_networks_is_without_effect(self, record: Definition, random: Any) -> None:
        """Unless the rule says that it is not symmetric."""
        if not self.rule.symmetric:
            return
        order = np.array(random.sample(range(record.labels.shape[0]), record.labels.shape[0]))
        self._same(self.predict(record), self.predict(reordered(record, networks=order)))

    @_settings
    @given(small_records(), st.randoms(use_true_random=False))
    def test_the_order_of_epochs_matters_only_as_the_rule_says(
        self, record: Definition, random: Any
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
    def test_blocks_together_are_the_whole(self, record: Definition) -> None:
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
    def test_after_each_epoch_it_is_the_rule_on_the_epochs_so_far(self, record: Definition) -> None:
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
