"""Threads and processes follow from the size of the networks."""

import pytest
import torch
from small_run import TEXT, changed
from torch import nn

from accord.training import _hardware, parse_spec
from accord.training._hardware import (
    SMALL_STEP,
    THREAD_SETTINGS,
    count_processes,
    count_threads,
    multiply_adds,
    torch_threads,
    uses_bfloat16,
)
from accord.training._prepared_data import prepare_data

SPEC = parse_spec(TEXT)
LONG = SPEC.model_copy(update={"train": SPEC.train.model_copy(update={"epochs": 10_000})})


@pytest.fixture(scope="module")
def data():
    return prepare_data(SPEC)


@pytest.fixture(autouse=True)
def four_threads(monkeypatch):
    for name in THREAD_SETTINGS:
        monkeypatch.delenv(name, raising=False)
    with torch_threads(4):
        yield


def test_multiply_adds_count_weights_pixels_and_samples(data):
    assert multiply_adds(nn.Linear(3, 2), SPEC, data) == 8 * 64 * 64  # weights, pixels, batch


def test_large_networks_use_all_threads_and_small_ones_one(data):
    assert count_threads(nn.Linear(3, 2), SPEC, data) == 1
    assert count_threads(nn.Linear(1000, 1000), SPEC, data) == 4


@pytest.mark.parametrize(
    ("sizes", "spec", "processes"),
    [
        ([10, 10], LONG, 2),
        ([10] * 9, LONG, 4),
        ([10, 10], SPEC, 1),  # too short to pay for the start of a process
        ([10], LONG, 1),
        ([10, SMALL_STEP + 1], LONG, 1),
    ],
)
def test_workers_are_used_for_several_small_networks_that_train_long(data, sizes, spec, processes):
    assert count_processes(sizes, spec, data) == processes


@pytest.mark.parametrize("name", THREAD_SETTINGS)
def test_no_workers_are_used_if_the_environment_sets_threads(data, monkeypatch, name):
    monkeypatch.setenv(name, "4")
    assert count_processes([10, 10], LONG, data) == 1
    assert count_threads(nn.Linear(3, 2), SPEC, data) == 4


def test_one_thread_leaves_no_core_for_workers(data):
    with torch_threads(1):
        assert count_processes([10, 10], LONG, data) == 1


def test_precision_is_as_the_spec_sets_it_and_automatic_on_a_cpu_is_float32():
    assert not uses_bfloat16(SPEC, torch.device("cpu"))
    text = changed(("batch = 64", 'batch = 64\nprecision = "bfloat16"'))
    assert uses_bfloat16(parse_spec(text), torch.device("cpu"))


def test_a_gpu_is_chosen_if_there_is_one(monkeypatch):
    for available, device in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda available=available: available)
        assert _hardware.choose_device().type == device
