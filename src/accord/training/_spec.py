"""Pydantic models for the spec of a run."""

import hashlib
import json
import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from accord.data.noise import NOISES
from accord.data.readers import READERS

SEEDS_APART: Final = 1000  # between the first seeds of runs whose `train.seed` differs by 1
TRANSFORMERS: Final = "transformers:"
DIGEST_EXCLUDES: Final = {"name", "root"}  # keys that change no label

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


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _reject_bool(cls, value: Any, info: ValidationInfo) -> Any:
        # pydantic converts true to 1
        wanted = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and wanted is not bool:
            raise ValueError("true and false are not allowed here")
        return value


def _by_kind(value: Any) -> Any:
    """Expand a name such as `"cosine"` to `{kind = "cosine"}`."""
    return {"kind": value} if isinstance(value, str) else value


class _PartWithOptions(_Part):
    """Part whose additional keys are options of what `kind` names."""

    model_config = ConfigDict(frozen=True, extra="allow")

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class DataSpec(_PartWithOptions):
    kind: str
    path: str | None = None
    validation: float = Field(0.0, ge=0, lt=1)  # share of the training samples held out
    per_class: int | None = Field(None, ge=1)  # training samples of each class
    verified: bool = False  # the labels of the test split are known to be right
    cross_fit: int | None = Field(None, ge=2)  # folds of the training samples
    fold: int | None = Field(None, ge=0)  # train on the other folds, and test on this one


class NoiseSpec(_Part):
    kind: str = "none"
    rate: float | None = Field(None, ge=0, le=1)
    seed: int | None = Field(None, ge=0)  # by default train.seed
    mapping: tuple[int, ...] | None = None
    path: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [name for name in ("rate", "mapping", "path") if getattr(self, name) is not None]
        if self.kind == "none" and given:
            raise ValueError(f"noise.{given[0]} is given, but noise.kind is none: name the kind")
        return self


Beta = Annotated[float, Field(ge=0, lt=1)]


class OptimizerSpec(_Part):
    """Optimizer settings."""

    kind: Literal["sgd", "adamw"] = "sgd"
    lr: float = Field(0.05, gt=0)
    momentum: float = Field(0.9, ge=0, lt=1)
    weight_decay: float = Field(5e-4, ge=0)
    nesterov: bool = False
    betas: tuple[Beta, Beta] = (0.9, 0.999)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov requires a momentum above 0")
        return self


class ScheduleSpec(_Part):
    """Learning rate schedule, with warm-up, milestones and cycles in epochs."""

    kind: Literal["cosine", "constant", "step", "linear"] = "cosine"
    warmup: float = Field(0.0, ge=0, allow_inf_nan=False)
    cycle: Annotated[int, Field(ge=1)] | None = None  # restart a cosine after this many
    milestones: tuple[float, ...] = ()
    factor: float = Field(0.1, gt=0, lt=1)


class LossSpec(_PartWithOptions):
    kind: str = "cross-entropy"


Schedule = Annotated[ScheduleSpec, BeforeValidator(_by_kind)]
Loss = Annotated[LossSpec, BeforeValidator(_by_kind)]
Augment = Literal["crop", "flip", "shift", "resized-crop"]


class NetworkOverrides(_Part):
    """Settings that override the defaults for one network."""

    network: str | None = None
    options: dict[str, Any] | None = None
    lr: float | None = Field(None, gt=0)
    optimizer: OptimizerSpec | None = None
    schedule: Schedule | None = None
    loss: Loss | None = None
    seed: int | None = Field(None, ge=0, lt=2**63)


# The discriminators keep errors to the form of the value that was written.
Networks = Annotated[
    Annotated[int, Field(ge=1), Tag("(count)")]
    | Annotated[tuple[NetworkOverrides, ...], Tag("(list)")],
    Discriminator(lambda value: "(list)" if isinstance(value, list | tuple) else "(count)"),
]
Checkpoints = Annotated[
    Annotated[int, Field(ge=0), Tag("(count)")] | Annotated[Literal["all"], Tag("(word)")],
    Discriminator(lambda value: "(word)" if re.search("[a-z]", str(value)) else "(count)"),
]


class TrainSpec(_Part):
    networks: Networks = 5
    network: str = "resnet18"
    options: dict[str, Any] = Field(default_factory=dict)  # the network's own
    pretrained: str | None = None
    batch_ensemble: int | None = Field(None, ge=2)  # members of each BatchEnsemble
    epochs: int = Field(ge=1)
    batch: int = Field(128, ge=1)
    optimizer: OptimizerSpec = OptimizerSpec()
    schedule: Schedule = ScheduleSpec()
    augment: tuple[Augment, ...] = ()
    length: int = Field(128, ge=2)  # tokens of a text; longer texts are truncated
    loss: Loss = LossSpec()
    clean_only: bool = False  # oracle: train on the correct labels only
    targets: str | None = Field(None, pattern="^[0-9a-f]{64}$")  # SHA-256 of RUN/targets.npy
    extra: str | None = None  # samples that only the targets label
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    seed: int = Field(0, ge=0, lt=2**63)


class RecordSpec(_Part):
    """Recording and checkpoint settings."""

    every: float = Field(1.0, ge=1e-6, allow_inf_nan=False)  # epochs
    splits: tuple[Literal["test", "train", "validation"], ...] = Field(("test",), min_length=1)
    probabilities: bool = False
    checkpoints: Checkpoints = 0  # a number of equally spaced epochs
    averages: tuple[Literal["ema", "swa"], ...] = ()  # of weights, with a record each


class Spec(_Part):
    """Specification of a run."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    root: str | None = None  # the folder of relative paths; by default the working directory
    data: DataSpec
    noise: NoiseSpec = NoiseSpec()
    train: TrainSpec
    record: RecordSpec = RecordSpec()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if "validation" in self.record.splits and not self.data.validation:
            raise ValueError(
                "record.splits names validation, but data.validation holds out nothing"
            )
        self._check_folds()
        self._check_targets()
        for name in ("splits", "averages"):
            values = getattr(self.record, name)
            if len(set(values)) < len(values):
                raise ValueError(f"record.{name} contains a duplicate: {', '.join(values)}")
        if isinstance(self.train.networks, tuple) and not self.train.networks:
            raise ValueError("train.networks is an empty list")
        if self.train.batch_ensemble and self.record.averages:
            raise ValueError("record.averages is not available for a BatchEnsemble")
        if len({"crop", "shift", "resized-crop"}.intersection(self.train.augment)) > 1:
            raise ValueError("train.augment takes one of crop, shift and resized-crop, not several")
        if round(1 / self.record.every, 6) % 1 and round(self.record.every, 6) % 1:
            raise ValueError("record.every must be a whole number of epochs, or 1 divided by one")
        return self

    def _check_folds(self) -> None:
        folds, fold, record = self.data.cross_fit, self.data.fold, self.record
        if fold is not None and fold >= (folds or 0):
            raise ValueError(f"data.fold must be below data.cross_fit; got {fold} and {folds}")
        if self.is_cross_fit and (record.splits != ("train",) or record.averages):
            raise ValueError(
                'data.cross_fit records the training split alone: set record.splits = ["train"], '
                "and no record.averages"
            )
        if folds and self.train.clean_only:
            raise ValueError("data.cross_fit and train.clean_only exclude each other")

    def _check_targets(self) -> None:
        if self.train.extra is not None and self.train.targets is None:
            raise ValueError("train.extra requires train.targets, which label these samples")
        if self.train.extra is not None and "train" in self.record.splits:
            raise ValueError("train.extra has no given labels: leave train out of record.splits")
        if self.train.targets is not None and (self.data.cross_fit or self.train.clean_only):
            raise ValueError("train.targets excludes data.cross_fit and train.clean_only")

    @property
    def is_cross_fit(self) -> bool:
        """Whether the training samples are divided into folds, each with networks of its own."""
        return self.data.cross_fit is not None and self.data.fold is None

    def digest(self) -> str:
        """Compute a digest of the spec that excludes its name and root.

        >>> spec = Spec(name="a", data={"kind": "cifar10", "path": "c10"}, train={"epochs": 9})
        >>> spec.digest() == spec.model_copy(update={"name": "b", "root": "data"}).digest()
        True
        """
        # Defaults are left out: a new key does not change the digest of runs without it.
        values = self.model_dump(mode="json", exclude=DIGEST_EXCLUDES, exclude_defaults=True)
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]

    def change(self, **parts: dict[str, Any]) -> Self:
        """Copy the spec with other settings in some of its parts, without checking them.

        >>> spec = Spec(name="a", data={"kind": "digits"}, train={"epochs": 9})
        >>> spec.change(train={"epochs": 4}, record={"checkpoints": 1}).train.epochs
        4
        """
        changed = {
            part: getattr(self, part).model_copy(update=settings)
            for part, settings in parts.items()
        }
        return self.model_copy(update=changed)

    def resolve_path(self, path: str) -> Path:
        """Resolve a path relative to the root of the spec.

        >>> spec = Spec(name="a", root="data", data={"kind": "digits"}, train={"epochs": 9})
        >>> spec.resolve_path("c10").as_posix(), spec.resolve_path("/elsewhere/c10").as_posix()
        ('data/c10', '/elsewhere/c10')
        """
        return Path(self.root or "").expanduser() / Path(path).expanduser()

    def resolve_network(self, network: str) -> str:
        """Resolve a network name, including local folders of transformers models."""
        folder = self.resolve_path(network.removeprefix(TRANSFORMERS))
        is_local = network.startswith(TRANSFORMERS) and folder.exists()
        return f"{TRANSFORMERS}{folder}" if is_local else network


class NetworkSpec(_Part):
    """Settings of one network of a run."""

    number: int  # of its first member, if it has several
    members: int = 1
    network: str
    options: dict[str, Any]
    optimizer: OptimizerSpec
    schedule: ScheduleSpec
    loss: LossSpec
    seed: int

    @property
    def numbers(self) -> range:
        """Numbers of the network or its members in a record."""
        return range(self.number, self.number + self.members)


def network_specs(spec: Spec) -> tuple[NetworkSpec, ...]:
    """Build the settings of each network of a run.

    A BatchEnsemble is one network here, and `members` networks in a record.
    """
    train = spec.train
    overrides = (
        train.networks
        if isinstance(train.networks, tuple)
        else (NetworkOverrides(),) * train.networks
    )
    return tuple(_network_spec(train, number, one) for number, one in enumerate(overrides))


def _network_spec(train: TrainSpec, number: int, one: NetworkOverrides) -> NetworkSpec:
    optimizer = one.optimizer or train.optimizer
    if one.lr is not None:
        optimizer = optimizer.model_copy(update={"lr": one.lr})
    return NetworkSpec(
        number=number * (train.batch_ensemble or 1),
        members=train.batch_ensemble or 1,
        network=one.network or train.network,
        options=train.options if one.options is None else one.options,
        optimizer=optimizer,
        schedule=one.schedule or train.schedule,
        loss=one.loss or train.loss,
        seed=train.seed * SEEDS_APART + number if one.seed is None else one.seed,
    )


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
