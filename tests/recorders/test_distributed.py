"""Several processes get equal shares of a loader, and together every sample."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, IterableDataset, SubsetRandomSampler
from torch.utils.data.distributed import DistributedSampler

from accord._recorders.distributed import share_loader
from accord.errors import ChoiceError


@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 9))
def test_shares_cover_all_samples_in_equally_many_batches(samples, processes, batch):
    data = torch.arange(samples) * 10
    loader = DataLoader(data, batch_size=batch)
    shares = [list(share_loader(loader, rank=r, processes=processes)) for r in range(processes)]
    assert len({len(share) for share in shares}) == 1
    assert len({sum(len(one.positions) for one in share) for share in shares}) == 1
    seen = np.concatenate([one.positions for share in shares for one in share])
    assert set(seen.tolist()) == set(range(samples))
    assert len(seen) < samples + processes
    for share in shares:
        for one in share:
            assert one.batch.tolist() == (one.positions * 10).tolist()
            assert len(one.positions) <= batch


def test_the_collate_function_of_the_loader_is_used():
    loader = DataLoader([1, 2, 3], batch_size=2, collate_fn=sum, drop_last=True, shuffle=True)
    batches = [one.batch for one in share_loader(loader, rank=0, processes=1)]
    assert batches == [3, 3]


def test_the_share_of_a_distributed_sampler_is_ignored():
    data = [1, 2, 3, 4]
    sampler = DistributedSampler(data, num_replicas=2, rank=1)
    (one,) = share_loader(DataLoader(data, batch_size=4, sampler=sampler), rank=0, processes=2)
    assert one.positions.tolist() == [0, 2]


class Stream(IterableDataset):
    def __iter__(self):
        yield 1


@pytest.mark.parametrize(
    ("loader", "message"),
    [
        (DataLoader(Stream(), batch_size=2), r"a map-style dataset and a batch size; got a Stream"),
        (DataLoader([1, 2], batch_size=None), r"and a batch size; got a list"),
        (DataLoader([1, 2], sampler=SubsetRandomSampler([0])), r"SubsetRandomSampler cannot be"),
    ],
)
def test_a_loader_without_positions_is_refused(loader, message):
    with pytest.raises(ChoiceError, match=message):
        share_loader(loader, rank=0, processes=2)
