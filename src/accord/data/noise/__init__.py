"""Label noise: labels in, the same labels with some of them wrong out."""

from accord.data.noise.files import labels_from_file
from accord.data.noise.instance import instance_noise
from accord.data.noise.kinds import NOISES, Noise, NoiseKind, add_noise, find_noise
from accord.data.noise.mapped import mapped_noise, patrini_noise, superclass_noise
from accord.data.noise.moved import asymmetric_noise, symmetric_noise

__all__ = [
    "NOISES",
    "Noise",
    "NoiseKind",
    "add_noise",
    "asymmetric_noise",
    "find_noise",
    "instance_noise",
    "labels_from_file",
    "mapped_noise",
    "patrini_noise",
    "superclass_noise",
    "symmetric_noise",
]
