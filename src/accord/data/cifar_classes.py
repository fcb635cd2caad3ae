"""The classes of CIFAR-10 and CIFAR-100, as their makers number them."""

from typing import Final

import numpy as np

CIFAR10_NAMES: Final = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
_BY_SUPERCLASS: Final = {
    "aquatic_mammals": "beaver dolphin otter seal whale",
    "fish": "aquarium_fish flatfish ray shark trout",
    "flowers": "orchid poppy rose sunflower tulip",
    "food_containers": "bottle bowl can cup plate",
    "fruit_and_vegetables": "apple mushroom orange pear sweet_pepper",
    "household_electrical_devices": "clock keyboard lamp telephone television",
    "household_furniture": "bed chair couch table wardrobe",
    "insects": "bee beetle butterfly caterpillar cockroach",
    "large_carnivores": "bear leopard lion tiger wolf",
    "large_man-made_outdoor_things": "bridge castle house road skyscraper",
    "large_natural_outdoor_scenes": "cloud forest mountain plain sea",
    "large_omnivores_and_herbivores": "camel cattle chimpanzee elephant kangaroo",
    "medium_mammals": "fox porcupine possum raccoon skunk",
    "non-insect_invertebrates": "crab lobster snail spider worm",
    "people": "baby boy girl man woman",
    "reptiles": "crocodile dinosaur lizard snake turtle",
    "small_mammals": "hamster mouse rabbit shrew squirrel",
    "trees": "maple_tree oak_tree palm_tree pine_tree willow_tree",
    "vehicles_1": "bicycle bus motorcycle pickup_truck train",
    "vehicles_2": "lawn_mower rocket streetcar tank tractor",
}
CIFAR100_SUPERCLASSES: Final = tuple(_BY_SUPERCLASS)  # numbered alphabetically, like the classes
CIFAR100_NAMES: Final = tuple(sorted(" ".join(_BY_SUPERCLASS.values()).split()))
_SUPERCLASS_OF: Final = {
    name: number for number, names in enumerate(_BY_SUPERCLASS.values()) for name in names.split()
}
CIFAR100_SUPERCLASS: Final = np.array(  # (class,) -> superclass
    [_SUPERCLASS_OF[name] for name in CIFAR100_NAMES]
)
CIFAR100_SUPERCLASS.flags.writeable = False
