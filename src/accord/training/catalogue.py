"""Everything a spec can name."""

from accord.data.noise import NOISES
from accord.data.readers import READERS
from accord.training.augmentation import AUGMENTATIONS
from accord.training.loop import OPTIMIZERS
from accord.training.losses import LOSSES
from accord.training.networks import NETWORKS
from accord.training.schedules import SCHEDULES


def catalogue() -> list[str]:
    """Return the name of everything that is built, as KIND/NAME.

    >>> "network/resnet18" in catalogue()
    True
    """
    kinds = {
        "reader": READERS,
        "noise": NOISES,
        "network": NETWORKS,
        "loss": LOSSES,
        "optimizer": OPTIMIZERS,
        "schedule": SCHEDULES,
        "augment": AUGMENTATIONS,
    }
    return [f"{kind}/{name}" for kind, names in kinds.items() for name in names]
