"""Record in two processes that train one network with torch.distributed."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import accord

SAMPLES = 29  # not divisible by two: the sampler repeats one

SCRIPT = """
import json, os, sys
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import accord
from accord.torch import record_epoch, with_ids

distributed.init_process_group("gloo")
rank, folder, samples = distributed.get_rank(), sys.argv[1], int(sys.argv[2])
inputs = torch.randn(samples, 4, generator=torch.Generator().manual_seed(1))
labels = inputs[:, :3].argmax(1)
dataset = TensorDataset(inputs, labels)

torch.manual_seed(0)
own = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
network = DistributedDataParallel(own)
optimizer = torch.optim.SGD(network.parameters(), lr=0.2)

sampler = DistributedSampler(dataset, shuffle=True)
training = DataLoader(dataset, batch_size=5, sampler=sampler)
held = with_ids(dataset)
dealt = DataLoader(held, batch_size=4, sampler=DistributedSampler(held, shuffle=True))

recorder = None
if rank == 0:
    size = {"samples": samples, "classes": 3, "truth": labels}
    recorder = accord.Recorder(folder + "/record", network=0, **size)

found = {"buffers": [], "expected": [], "arrived": sum(len(batch.id) for batch in dealt)}
for epoch in range(3):
    sampler.set_epoch(epoch)
    dealt.sampler.set_epoch(epoch)
    for batch, given in training:
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(batch), given).backward()
        optimizer.step()
    before = [buffer.clone() for buffer in own.buffers()]
    record_epoch(recorder, network, dealt, epoch=epoch, progress=epoch + 1)
    found["buffers"].append([torch.equal(*pair) for pair in zip(before, own.buffers())])
    own.eval()
    with torch.no_grad():
        found["expected"].append(own(inputs).argmax(1).tolist())
    own.train()
found["statistics"] = own[1].running_mean.tolist()

# A process with all the data can record alone while the other continues.
if rank == 0:
    record_epoch(recorder, network, DataLoader(dataset, batch_size=4))


def fails(name, *given, **options):
    try:
        record_epoch(recorder, *given, **options)
    except Exception as error:
        found[name] = [type(error).__name__, str(error)]


def broken(network, batch):
    if rank == 1:
        raise ZeroDivisionError("here")
    return network(batch[0])


blind = DataLoader(dataset, batch_size=4, sampler=DistributedSampler(dataset, shuffle=False))
fails("no ids", network, blind)
fails("no ids, own shares", network, [(inputs[rank::2], labels[rank::2])], gather=True)
fails("one fails", network, dealt, forward=broken)
fails("missing", network, [(inputs[:9], labels[:9], torch.arange(9))], gather=True)
if recorder is not None:
    recorder.close()
fails("closed", network, dealt)
recorder = None
fails("nobody records", network, dealt)
with open(f"{folder}/{rank}.json", "w") as file:
    json.dump(found, file)
distributed.barrier()
distributed.destroy_process_group()
os._exit(0)  # torch's threads may abort while a process exits
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("distributed")
    (folder / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
            *(folder / "script.py", folder, str(SAMPLES)),
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def found(folder):
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


def test_the_row_is_what_the_first_processs_network_predicts(folder, found):
    labels = np.asarray(accord.open(folder / "record").labels)[0].tolist()
    assert labels[:3] == found[0]["expected"]
    assert len(labels) == 4  # including one that the first process wrote alone
    assert labels[3] == labels[2]


def test_the_last_batch_was_padded(found):
    assert sum(one["arrived"] for one in found) == SAMPLES + 1


def test_each_process_keeps_its_own_statistics(found):
    assert found[0]["statistics"] != found[1]["statistics"]
    assert all(all(same) for one in found for same in one["buffers"])


@pytest.mark.parametrize(
    ("case", "kind", "words"),
    [
        ("no ids", "ChoiceError", "any order (DistributedSampler)"),
        ("no ids, own shares", "PredictionError", "several processes evaluated, and their batches"),
        ("missing", "PredictionError", "20 of 29 samples are missing: 9, 10, 11, …"),
        ("closed", "RecordClosed", "the recorder of network 0 is closed"),
        ("nobody records", "ChoiceError", "needs an open accord.Recorder"),
    ],
)
def test_all_processes_raise_the_same_error(found, case, kind, words):
    for one in found:
        assert one[case][0] in (kind, "PredictionError")
        assert words in one[case][1]
    assert found[0][case][0] == kind


def test_an_error_in_one_process_is_raised_in_all(found):
    assert found[1]["one fails"] == ["ZeroDivisionError", "here"]
    assert found[0]["one fails"] == [
        "PredictionError",
        "process 1 of 2: it failed with ZeroDivisionError: here",
    ]
