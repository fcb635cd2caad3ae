import threading

import numpy as np
import pytest
from drawn_labels import labels_and_classes
from hypothesis import given, settings
from hypothesis import strategies as st

from accord import kernels
from accord.kernels import _numpy_loops as dense
from accord.kernels._blocks import Block

fast = pytest.importorskip("accord.kernels._numba_loops")


def everything(labels, classes):
    return [
        *kernels.winners(labels, classes=classes),
        kernels.margins(labels, classes=classes),
        kernels.final_margins(labels, classes=classes),
        kernels.running_winners(labels, classes=classes),
        kernels.winners_by_subset(labels, [(0,), range(len(labels))], classes=classes),
        kernels.winners_by_spacing(labels, [1, labels.shape[1]], classes=classes),
    ]


def by(loops, labels, classes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACCORD_KERNELS", loops)
        return everything(labels, classes)


@settings(max_examples=50)
@given(labels_and_classes())
def test_both_loops_give_the_same_bits(drawn):
    for slow, quick in zip(by("numpy", *drawn), by("numba", *drawn), strict=True):
        assert (slow.dtype, slow.tobytes()) == (quick.dtype, quick.tobytes())


def test_a_block_is_read_from_its_start_to_its_stop():
    labels = np.random.default_rng(0).integers(0, 3, (5, 4, 50)).astype(np.uint8)
    block = Block(labels, 20, 37, 3)
    np.testing.assert_array_equal(fast.tabulate(block), dense.tabulate(block))
    np.testing.assert_array_equal(fast.run(block), dense.run(block))
    guessed, votes = fast.guess(block)
    np.testing.assert_array_equal(votes, (labels[..., 20:37] == guessed).sum(axis=(0, 1)))


def test_loops_are_compiled_for_read_only_labels_alone():
    fast.tabulate(Block(np.zeros((2, 3), np.uint8), 0, 3, 2))
    assert {labels.mutable for labels, *_ in fast._tabulate.signatures} == {False}


@pytest.mark.parametrize("loops", [dense, fast])
@given(st.permutations([5] * 9 + [0, 1, 2, 3, 3, 3, 3]))
def test_a_majority_of_the_guessers_is_guessed(loops, labels):
    guessed, votes = loops.guess(Block(np.array(labels, np.uint8)[:, None], 0, 1, 6))
    assert (guessed, votes) == ([5], [9])


def test_callers_may_come_in_several_threads(monkeypatch):
    monkeypatch.setenv("ACCORD_KERNELS", "numba")
    labels = np.random.default_rng(0).integers(0, 5, (5, 40_000)).astype(np.uint8)
    found = []

    def call():
        found.append(kernels.winners(labels, classes=5).labels)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(found) == 4
    for one in found:
        np.testing.assert_array_equal(one, found[0])


def test_a_loop_without_a_folder_to_cache_in_is_compiled_all_the_same():
    names = {}
    exec("def double(number):\n    return 2 * number", names)
    assert fast._compiled(names["double"])(21) == 42
