"""A network is evaluated over a loader and recorded without changing its training."""

import random
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    TensorDataset,
    WeightedRandomSampler,
)

import accord
from accord.errors import ChoiceError, PredictionError, RecordClosed, RowExists
from accord.torch import record_epoch, with_ids

SAMPLES, CLASSES = 23, 4


@pytest.fixture
def network():
    torch.manual_seed(0)
    return nn.Sequential(
        OrderedDict(
            first=nn.Linear(5, 16),
            norm=nn.BatchNorm1d(16),
            relu=nn.ReLU(),
            drop=nn.Dropout(0.5),
            last=nn.Linear(16, CLASSES),
        )
    )


@pytest.fixture
def inputs():
    return torch.randn(SAMPLES, 5, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def labels(inputs):
    return torch.arange(SAMPLES) % CLASSES


@pytest.fixture
def expected(network, inputs):
    network.eval()
    with torch.no_grad():
        found = network(inputs).argmax(1).tolist()
    network.train()
    return found


@pytest.fixture
def recorder(tmp_path):
    with accord.Recorder(
        tmp_path / "record", network=0, samples=SAMPLES, classes=CLASSES
    ) as recorder:
        yield recorder


def recorded(tmp_path):
    return np.asarray(accord.open(tmp_path / "record").labels)[0].tolist()


class Mappings(Dataset):
    def __init__(self, inputs, labels):
        self.inputs, self.labels = inputs, labels

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, position):
        return {"input": self.inputs[position], "labels": self.labels[position]}


# Batches of every form


def tensors(inputs, labels):
    return inputs


def singles(inputs, labels):
    return TensorDataset(inputs)


def pairs(inputs, labels):
    return TensorDataset(inputs, labels)


def triples(inputs, labels):
    return TensorDataset(inputs, labels, torch.arange(SAMPLES))


def mappings(inputs, labels):
    return Mappings(inputs, labels)


def nested(inputs, labels):
    return [(({"input": one}), label) for one, label in zip(inputs, labels, strict=True)]


def arguments(inputs, labels):
    return [((one,), label) for one, label in zip(inputs, labels, strict=True)]


FORMS = [tensors, singles, pairs, triples, mappings, nested, arguments]


@pytest.mark.parametrize("form", FORMS)
def test_batches_of_every_form_are_read(
    form, network, inputs, labels, expected, recorder, tmp_path
):
    record_epoch(recorder, network, DataLoader(form(inputs, labels), batch_size=4))
    assert recorded(tmp_path) == [expected]


@pytest.mark.parametrize("form", FORMS)
def test_with_ids_a_shuffled_loader_is_put_into_order(
    form, network, inputs, labels, expected, recorder, tmp_path
):
    dataset = form(inputs, labels) if form is triples else with_ids(form(inputs, labels))
    record_epoch(recorder, network, DataLoader(dataset, batch_size=4, shuffle=True))
    assert recorded(tmp_path) == [expected]


def test_any_iterable_of_batches_is_accepted(network, inputs, expected, recorder, tmp_path):
    record_epoch(recorder, network, inputs.split(6))
    assert recorded(tmp_path) == [expected]


class Batch(NamedTuple):
    labels: Any
    halves: Any
    weight: Any


def test_forward_takes_any_other_batch(network, inputs, labels, expected, recorder, tmp_path):
    batches = [
        Batch(label, {"halves": [one[:, :2], one[:, 2:]]}, 1.0)
        for one, label in zip(inputs.split(5), labels.split(5), strict=True)
    ]

    def forward(network, batch):
        assert isinstance(batch, Batch)
        return {"logits": network(torch.cat(batch.halves["halves"], 1)), "more": None}

    record_epoch(recorder, network, batches, forward=forward)
    assert recorded(tmp_path) == [expected]


def test_forward_is_given_the_batch_without_the_ids_of_with_ids(
    network, inputs, labels, expected, recorder, tmp_path
):
    loader = DataLoader(with_ids(pairs(inputs, labels)), batch_size=4, shuffle=True)
    record_epoch(recorder, network, loader, forward=lambda network, batch: network(batch[0]))
    loader = DataLoader(with_ids(mappings(inputs, labels)), batch_size=4, shuffle=True)
    record_epoch(
        recorder,
        network,
        loader,
        forward=lambda network, batch: network(batch["input"]) if len(batch) == 2 else None,
    )
    assert recorded(tmp_path) == [expected, expected]


def test_with_forward_the_third_element_is_not_ids(
    network, inputs, labels, expected, recorder, tmp_path
):
    loader = DataLoader(TensorDataset(inputs[:, :2], inputs[:, 2:], labels), batch_size=4)
    record_epoch(recorder, network, loader, forward=lambda net, batch: net(torch.cat(batch[:2], 1)))
    assert recorded(tmp_path) == [expected]


def test_ids_selects_the_ids_of_a_batch(network, inputs, labels, expected, recorder, tmp_path):
    turned = torch.arange(SAMPLES).flip(0)
    loader = DataLoader(TensorDataset(inputs.flip(0), turned), batch_size=4)
    record_epoch(recorder, network, loader, ids=lambda batch: batch[1])
    assert recorded(tmp_path) == [expected]


def test_samples_with_names_are_put_into_order(network, inputs, expected, tmp_path):
    names = [f"picture {n}" for n in range(SAMPLES)]
    size = {"samples": SAMPLES, "classes": CLASSES, "ids": names}
    loader = DataLoader(with_ids(inputs, names), batch_size=4, shuffle=True)
    with accord.Recorder(tmp_path / "record", network=0, **size) as recorder:
        record_epoch(recorder, network, loader)
    assert recorded(tmp_path) == [expected]


class Wrapped(nn.Module):
    def __init__(self, network, wrap):
        super().__init__()
        self.network, self.wrap = network, wrap

    def forward(self, inputs):
        return self.wrap(self.network(inputs))


class Output:
    def __init__(self, logits):
        self.logits = logits


@pytest.mark.parametrize(
    "wrap",
    [
        Output,
        lambda logits: {"loss": None, "logits": logits},
        lambda logits: (logits, "hidden"),
        lambda logits: logits.bfloat16().double(),
        lambda logits: logits.argmax(1),
    ],
)
def test_logits_are_found_in_what_a_network_returns(
    wrap, network, inputs, expected, recorder, tmp_path
):
    record_epoch(recorder, Wrapped(network, wrap), inputs.split(6))
    assert recorded(tmp_path) == [expected]


def test_half_precision_is_read(network, inputs, recorder, tmp_path):
    record_epoch(recorder, network.bfloat16(), inputs.bfloat16().split(6))
    assert len(recorded(tmp_path)[0]) == SAMPLES


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_one_logit_means_class_1_of_two(shape, tmp_path):
    inputs = torch.tensor([-2.0, 0.0, 3.0])
    with accord.Recorder(tmp_path, network=0, samples=3, classes=2, probabilities=True) as recorder:
        record_epoch(recorder, nn.Identity(), [inputs.reshape(shape)])
    record = accord.open(tmp_path)
    assert np.asarray(record.labels).tolist() == [[[0, 0, 1]]]
    found = np.asarray(record.probabilities)[0, 0, :, 1]
    np.testing.assert_allclose(found, torch.sigmoid(inputs).numpy(), atol=1e-3)


def test_probabilities_are_kept_in_the_records_order(network, inputs, tmp_path):
    size = {"samples": SAMPLES, "classes": CLASSES, "probabilities": True}
    loader = DataLoader(with_ids(inputs), batch_size=4, shuffle=True)
    with accord.Recorder(tmp_path, network=0, **size) as recorder:
        record_epoch(recorder, network, loader)
    network.eval()
    expected = network(inputs).softmax(1).detach().numpy()
    found = np.asarray(accord.open(tmp_path).probabilities)[0, 0]
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_metrics_are_stored(network, inputs, recorder, tmp_path):
    record_epoch(recorder, network, [inputs], epoch=0, progress=0.1, loss=0.31)
    (info,) = accord.open(tmp_path / "record").networks_info
    assert (info.progress, info.metrics) == ((0.1,), ({"loss": 0.31},))
    with pytest.raises(RowExists, match="epoch 0 was recorded before"):
        record_epoch(recorder, network, [inputs], epoch=0)


# Training state


def test_the_mode_of_every_module_is_restored(network, inputs, recorder):
    network.norm.eval()
    before = [module.training for module in network.modules()]
    assert set(before) == {True, False}
    record_epoch(recorder, network, [inputs])
    assert [module.training for module in network.modules()] == before
    network.eval()
    network.drop.train()
    record_epoch(recorder, network, [inputs])
    assert [module for module in network.modules() if module.training] == [network.drop]


def test_the_network_is_evaluated_in_evaluation_mode(network, inputs, recorder):
    seen = []
    network.register_forward_hook(lambda module, *_: seen.append(module.training))
    record_epoch(recorder, network, [inputs])
    assert seen == [False]


def test_a_network_that_swaps_weights_in_evaluation_gets_them_back(inputs, recorder):
    class Averaged(nn.Linear):
        def train(self, mode=True):
            if mode != self.training:
                self.weight.data = -self.weight.data
            return super().train(mode)

    network = Averaged(5, CLASSES)
    before = network.weight.detach().clone()
    record_epoch(recorder, network, [inputs])
    torch.testing.assert_close(network.weight, before, rtol=0, atol=0)


class Noisy(Dataset):
    """Draws from every random generator."""

    def __init__(self, inputs):
        self.inputs = inputs

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, position):
        noise = random.random() + np.random.rand() + torch.rand(1).item()  # noqa: NPY002
        return self.inputs[position] + noise


def draws(own):
    return (
        random.random(),
        np.random.rand(),  # noqa: NPY002
        torch.rand(3).tolist(),
        torch.rand(3, generator=own).tolist(),
    )


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_random_states_are_restored(shuffle, fails, network, inputs, recorder):
    own = torch.Generator().manual_seed(3)
    data = with_ids(Noisy(inputs[:-1] if fails else inputs))
    loader = DataLoader(data, batch_size=4, shuffle=shuffle, generator=own)

    def seeded():
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        torch.manual_seed(0)
        own.manual_seed(0)

    seeded()
    expected = draws(own)
    seeded()
    if fails:
        with pytest.raises(PredictionError, match="are missing"):
            record_epoch(recorder, network, loader)
    else:
        record_epoch(recorder, network, loader)
    assert draws(own) == expected


def test_gradients_and_statistics_are_not_touched(network, inputs, recorder):
    network(inputs).sum().backward()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    gradients = [parameter.grad.clone() for parameter in network.parameters()]
    record_epoch(recorder, network, [inputs])
    assert torch.is_grad_enabled()
    for name, value in network.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)
    for parameter, gradient in zip(network.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=0, atol=0)


def test_training_inside_autocast_still_gets_gradients(network, inputs, recorder):
    with torch.autocast("cpu", torch.bfloat16):
        record_epoch(recorder, network, [inputs])
        assert torch.is_autocast_enabled("cpu")
        assert torch.is_autocast_cache_enabled()
        loss = network(inputs).float().sum()
    loss.backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


def test_the_autocast_cache_is_off_during_evaluation(network, inputs, recorder):
    seen = []
    network.register_forward_hook(lambda *_: seen.append(torch.is_autocast_cache_enabled()))
    with torch.autocast("cpu", torch.bfloat16):
        record_epoch(recorder, network, [inputs])
        network(inputs)
    assert seen == [False, True]


def test_autocast_of_the_caller_applies(network, inputs, recorder):
    seen = []
    network.register_forward_hook(lambda *parts: seen.append(parts[-1].dtype))
    with torch.autocast("cpu", torch.bfloat16):
        record_epoch(recorder, network, [inputs])
    record_epoch(recorder, network, [inputs])
    assert seen == [torch.bfloat16, torch.float32]


def test_a_tensor_cached_during_evaluation_can_be_trained_with(inputs, recorder):
    class Lazy(nn.Linear):
        table = None

        def forward(self, inputs):
            if self.table is None:
                self.table = torch.ones(5) * 2
            return super().forward(inputs * self.weight.mean() * self.table)

    network = Lazy(5, CLASSES)
    record_epoch(recorder, network, [inputs])
    network(inputs).sum().backward()
    assert network.weight.grad is not None


def test_recording_does_not_change_what_is_trained(inputs, labels, tmp_path):
    def train(record):
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.Dropout(0.5))
        network.append(nn.Linear(16, CLASSES))
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(inputs, labels), batch_size=5, shuffle=True)
        held = DataLoader(with_ids(inputs), batch_size=4, shuffle=True)
        for _ in range(2):
            for batch, given in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(network(batch), given).backward()
                optimizer.step()
                record(network, held)
        return network.state_dict()

    with accord.Recorder(tmp_path, network=0, samples=SAMPLES, classes=CLASSES) as recorder:
        found = train(lambda network, held: record_epoch(recorder, network, held))
        assert recorder.epochs == 10
    for name, value in train(lambda *_: None).items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=0)


# Refused loaders


@pytest.mark.parametrize(
    ("options", "order"),
    [
        ({"shuffle": True}, "RandomSampler"),
        ({"sampler": WeightedRandomSampler([1.0] * SAMPLES, SAMPLES)}, "WeightedRandomSampler"),
        ({"in_order": False}, "SequentialSampler"),
    ],
)
def test_a_loader_that_shuffles_without_ids_is_refused_before_evaluation(
    options, order, inputs, recorder
):
    def fail(inputs):
        raise AssertionError

    loader = DataLoader(inputs, batch_size=4, **options)
    with pytest.raises(ChoiceError, match=rf"any order \({order}\).*shuffle=False.*with_ids"):
        record_epoch(recorder, Wrapped(fail, fail), loader)
    assert recorder.epochs == 0


def test_a_loader_that_drops_the_last_batch_is_refused(network, inputs, recorder):
    with pytest.raises(ChoiceError, match=r"drops the last 3 of 23 samples.*drop_last=False"):
        record_epoch(recorder, network, DataLoader(inputs, batch_size=4, drop_last=True))
    loader = DataLoader(with_ids(inputs), batch_size=4, drop_last=True)
    with pytest.raises(PredictionError, match=r"^3 of 23 samples are missing: 20, 21, 22\."):
        record_epoch(recorder, network, loader)


def test_drop_last_is_accepted_if_nothing_is_dropped(network, inputs, recorder):
    record_epoch(recorder, network, DataLoader(inputs, batch_size=SAMPLES, drop_last=True))
    assert recorder.epochs == 1


def test_a_dataset_that_changes_its_size_is_refused_and_nothing_is_lost(
    network, inputs, expected, recorder, tmp_path
):
    record_epoch(recorder, network, inputs.split(6))
    with pytest.raises(PredictionError, match=r"^got 22 predictions for 23.*changed its size"):
        record_epoch(recorder, network, inputs[1:].split(6))
    with pytest.raises(PredictionError, match=r"^got 25 predictions for 23.*changed its size"):
        record_epoch(recorder, network, torch.cat([inputs, inputs[:2]]).split(6))
    record_epoch(recorder, network, inputs.split(6))
    assert recorded(tmp_path) == [expected, expected]


def test_an_iterable_dataset_is_read_in_order(network, inputs, expected, recorder, tmp_path):
    class Stream(IterableDataset):
        def __iter__(self):
            yield from inputs

    record_epoch(recorder, network, DataLoader(Stream(), batch_size=4, drop_last=False))
    assert recorded(tmp_path) == [expected]
    with pytest.raises(PredictionError, match=r"^got 20 predictions for 23"):
        record_epoch(recorder, network, DataLoader(Stream(), batch_size=4, drop_last=True))


def test_an_empty_loader_is_refused(network, recorder):
    with pytest.raises(PredictionError, match="gave no batch"):
        record_epoch(recorder, network, [])


@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_logits_are_refused_and_earlier_epochs_are_safe(probabilities, value, inputs, tmp_path):
    path = tmp_path / "record"
    size = {"samples": SAMPLES, "classes": CLASSES, "probabilities": probabilities}
    logits = inputs[:, :CLASSES].clone()
    logits[7, 2] = value
    with accord.Recorder(path, network=3, **size) as recorder:
        record_epoch(recorder, nn.Identity(), [inputs[:, :CLASSES]], progress=0.5)
        with pytest.raises(
            PredictionError,
            match=r"network 3, epoch 1 \(progress 1\.5\): .*NaN.* 1 of 23 samples: 7\. .*dive",
        ):
            record_epoch(recorder, nn.Identity(), logits.split(6), progress=1.5)
        with pytest.raises(PredictionError, match="network 3, epoch 1: "):
            record_epoch(recorder, nn.Identity(), logits.split(6))
        record_epoch(recorder, nn.Identity(), [inputs[:, :CLASSES]], progress=1.5)
    assert accord.open(path).progress == (0.5, 1.5)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda logits: logits[:, :3], r"shape \(batch, 4\); got float32 of shape \(23, 3\)"),
        (lambda logits: logits[:, :1], r"shape \(batch, 4\); got float32 of shape \(23, 1\)"),
        (lambda logits: logits[:, None], r"got float32 of shape \(23, 1, 4\).*forward="),
        (lambda logits: logits > 0, "got bool"),
    ],
)
def test_outputs_of_another_shape_are_refused(answer, message, network, inputs, recorder):
    with pytest.raises(PredictionError, match=message):
        record_epoch(recorder, Wrapped(network, answer), [inputs])


@pytest.mark.parametrize("answer", ["text", {"scores": 1}, ()])
def test_an_output_without_logits_is_refused(answer, inputs, recorder):
    with pytest.raises(ChoiceError, match=r"must return logits.*got (str|dict|tuple).*forward="):
        record_epoch(recorder, Wrapped(nn.Identity(), lambda _: answer), [inputs])


@pytest.mark.parametrize("parts", [0, 4])
def test_a_tuple_of_unknown_meaning_is_refused(parts, network, inputs, recorder):
    with pytest.raises(ChoiceError, match=rf"\(inputs, labels, ids\); got {parts} parts.*forward="):
        record_epoch(recorder, network, [(inputs,) * parts])


def test_a_third_element_that_is_not_ids_is_refused(network, inputs, labels, recorder):
    with pytest.raises(PredictionError, match=r"ids must be whole numbers or text.*float32"):
        record_epoch(recorder, network, [(inputs, labels, torch.ones(SAMPLES))])
    with pytest.raises(PredictionError, match=r"2 ids, and the network returned 23.*third element"):
        record_epoch(recorder, network, [(inputs, labels, torch.arange(2))])


def test_batches_with_and_without_ids_are_not_mixed(network, inputs, labels, recorder):
    batches = [(inputs[:9], labels[:9], torch.arange(9)), (inputs[9:], labels[9:])]
    with pytest.raises(PredictionError, match=r"some batches .* carry ids and others do not"):
        record_epoch(recorder, network, batches)


def test_a_closed_recorder_is_refused_before_anything_is_evaluated(recorder):
    def evaluate(_):
        raise AssertionError("evaluated")

    recorder.close()
    with pytest.raises(RecordClosed, match="recorder of network 0 is closed"):
        record_epoch(recorder, Wrapped(nn.Identity(), evaluate), [torch.zeros(2, 2)])


def test_network_and_loader_swapped_are_refused(network, inputs, recorder):
    with pytest.raises(ChoiceError, match=r"got a list and a Sequential\. Are they swapped\?"):
        record_epoch(recorder, [inputs], network)


@pytest.mark.parametrize(("network", "loader"), [(len, []), (nn.Identity(), 3)])
def test_other_types_are_refused(network, loader, recorder):
    with pytest.raises(ChoiceError, match=r"needs a torch\.nn\.Module.*\. The order is"):
        record_epoch(recorder, network, loader)


def test_no_recorder_is_refused(network, inputs):
    with pytest.raises(ChoiceError, match=r"needs an open accord\.Recorder.*another process"):
        record_epoch(None, network, [inputs])


def test_with_ids_keeps_length_and_items(inputs, labels):
    dataset = with_ids(pairs(inputs, labels))
    assert len(dataset) == SAMPLES
    (one, label), position = dataset[4]
    assert (label, position) == (0, 4)
    assert one is not None
    assert with_ids([{"x": 1}], ["a"])[0] == {"x": 1, "ids": "a"}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_random_state_is_kept(network, inputs, expected, recorder, tmp_path):
    network.cuda()
    torch.cuda.manual_seed(0)
    first = torch.rand(3, device="cuda").tolist()
    torch.cuda.manual_seed(0)
    noisy = Wrapped(network, lambda logits: logits + 0 * torch.rand_like(logits))
    record_epoch(recorder, noisy, DataLoader(inputs, batch_size=4))
    assert torch.rand(3, device="cuda").tolist() == first
    assert recorded(tmp_path) == [expected]
