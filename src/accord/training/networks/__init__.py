"""Network architectures."""

from accord.errors import missing_extra

try:
    import torch  # noqa: F401
except ImportError as error:
    raise missing_extra("accord.training.networks", "torch", extra="train", cause=error) from error

from accord.training.networks._registry import NETWORKS, build, is_user_code
from accord.training.networks._weights import load_weights, warn_once
from accord.training.networks.batch_ensemble import (
    BatchEnsemble,
    BatchEnsembleConv2d,
    BatchEnsembleLinear,
    parameter_groups,
    to_batch_ensemble,
)
from accord.training.networks.densenet import DenseNet121
from accord.training.networks.mobilenet import MobileNetV2
from accord.training.networks.resnet import ResNet18, ResNet32, ResNet50, WideResNet
from accord.training.networks.small import MLP, RandomPredictor, SmallCNN

__all__ = [
    "MLP",
    "NETWORKS",
    "BatchEnsemble",
    "BatchEnsembleConv2d",
    "BatchEnsembleLinear",
    "DenseNet121",
    "MobileNetV2",
    "RandomPredictor",
    "ResNet18",
    "ResNet32",
    "ResNet50",
    "SmallCNN",
    "WideResNet",
    "build",
    "is_user_code",
    "load_weights",
    "parameter_groups",
    "to_batch_ensemble",
    "warn_once",
]
