"""Record your own torch loop: one line records an epoch and leaves the training unchanged."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import accord
from accord.data import Digits, load_digits, split_digits
from accord.data.noise import symmetric_noise
from accord.torch import record_epoch, with_ids

EPOCHS, NETWORKS = 15, 3
train, test = split_digits(load_digits(), seed=0)
given = torch.from_numpy(symmetric_noise(train.labels, rate=0.4, classes=10, seed=0)).long()


def images(digits: Digits) -> torch.Tensor:
    return torch.from_numpy(digits.images).float().flatten(1) / 16


train_loader = DataLoader(TensorDataset(images(train), given), batch_size=32, shuffle=True)
test_set = TensorDataset(images(test), torch.from_numpy(test.labels).long())
test_loader = DataLoader(with_ids(test_set), batch_size=256)

for number in range(NETWORKS):
    torch.manual_seed(number)
    network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    with accord.Recorder(
        "torch-loader-record", network=number, samples=len(test_set), classes=10, truth=test.labels
    ) as recorder:
        for epoch in range(EPOCHS):
            for batch, labels in train_loader:
                loss = nn.functional.cross_entropy(network(batch), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            if epoch >= recorder.epochs:  # after a restart, only missing epochs
                record_epoch(recorder, network, test_loader, loss=loss.item())

for score in accord.open("torch-loader-record").score():
    print(f"{score.rule:18} {100 * score.accuracy:.1f}")
