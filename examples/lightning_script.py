"""Record from Lightning: one additional callback."""

import pytorch_lightning as lightning
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import accord
from accord.data import Digits, load_digits, split_digits
from accord.data.noise import symmetric_noise
from accord.lightning import RecordPredictions

train, test = split_digits(load_digits(), seed=0)
given = torch.from_numpy(symmetric_noise(train.labels, rate=0.4, classes=10, seed=0)).long()


class Classifier(lightning.LightningModule):
    """A perceptron with one hidden layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, images: Tensor) -> Tensor:
        """Return logits (sample, class)."""
        logits: Tensor = self.layers(images)
        return logits

    def training_step(self, batch: list[Tensor], _: int) -> Tensor:
        """Return the loss of one batch."""
        return nn.functional.cross_entropy(self(batch[0]), batch[1])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return what trains the layers."""
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


def images(digits: Digits) -> Tensor:
    return torch.from_numpy(digits.images).float().flatten(1) / 16


train_loader = DataLoader(TensorDataset(images(train), given), batch_size=32, shuffle=True)
test_loader = DataLoader(TensorDataset(images(test)), batch_size=256)

for number in range(3):
    torch.manual_seed(number)
    record = RecordPredictions(
        "lightning-record", test_loader, network=number, classes=10, truth=test.labels
    )
    trainer = lightning.Trainer(
        max_epochs=8, callbacks=[record], logger=False, enable_checkpointing=False
    )
    trainer.fit(Classifier(), train_loader)

for score in accord.open("lightning-record").score():
    print(f"{score.rule:18} {100 * score.accuracy:.1f}")
