"""Everything a spec can name."""

from accord.data.noise import NOISES
from accord.data.readers import READERS
from accord.training._batches import AUGMENTATIONS
from accord.training._loop import OPTIMIZERS, SCHEDULES
from accord.training._losses import LOSSES
from accord.training.networks import NETWORKS


def registered_names() -> list[str]:
    """Return the name of everything that is built, as KIND/NAME.

    >>> "network/resnet18" in registered_names()
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
