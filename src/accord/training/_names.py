"""Names that can be used in a spec."""

from typing import Final, get_args

from accord.data.noise import NOISES
from accord.data.readers import READERS
from accord.training._spec import Augment, OptimizerSpec, ScheduleSpec

# Loading the registries of networks and losses takes torch; a test compares them with these.
NETWORK_NAMES: Final = (
    "mlp",
    "small-cnn",
    "resnet18",
    "resnet32",
    "resnet50",
    "densenet121",
    "wideresnet28-10",
    "mobilenetv2",
    "random",
)
LOSS_NAMES: Final = ("cross-entropy", "elr")


def registered_names() -> list[str]:
    """List all registered names as KIND/NAME.

    >>> "network/resnet18" in registered_names()
    True
    """
    kinds = {
        "reader": READERS,
        "noise": NOISES,
        "network": NETWORK_NAMES,
        "loss": LOSS_NAMES,
        "optimizer": get_args(OptimizerSpec.model_fields["kind"].annotation),
        "schedule": get_args(ScheduleSpec.model_fields["kind"].annotation),
        "augment": get_args(Augment),
    }
    return [f"{kind}/{name}" for kind, names in kinds.items() for name in names]
