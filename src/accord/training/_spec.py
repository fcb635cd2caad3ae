"""A spec: what to train, on what, and what to record; TOML in, frozen models out."""

import hashlib
import json
import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

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

SEEDS_APART: Final = 1000  # between a run's networks and those of the next seed
TRANSFORMERS: Final = "transformers:"
DIGEST_EXCLUDES: Final = {"name", "root"}  # keys that change no label


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _check_truth(cls, value: Any, info: ValidationInfo) -> Any:
        # pydantic would count true as 1
        wanted = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and wanted is not bool:
            raise ValueError("neither true nor false can be meant here")
        return value


def _by_kind(value: Any) -> Any:
    """Take `"cosine"` for `{kind = "cosine"}`."""
    return {"kind": value} if isinstance(value, str) else value


class DataSpec(_Part):
    """Where the data come from; keys that are not listed here go to the reader."""

    model_config = ConfigDict(frozen=True, extra="allow")

    kind: str
    path: str | None = None
    validation: float = Field(0.0, ge=0, lt=1)  # share of the training samples held out
    per_class: int | None = Field(None, ge=1)  # train on so many samples of each class

    @property
    def options(self) -> dict[str, Any]:
        """What is meant for the reader."""
        return dict(self.model_extra or {})


class NoiseSpec(_Part):
    """Which training labels to make wrong."""

    kind: str = "none"
    rate: float | None = Field(None, ge=0, le=1)
    seed: int | None = Field(None, ge=0)  # by default the training's
    mapping: tuple[int, ...] | None = None
    path: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        said = [name for name in ("rate", "mapping", "path") if getattr(self, name) is not None]
        if self.kind == "none" and said:
            raise ValueError(f"noise.{said[0]} is given, but noise.kind is none: name the kind")
        return self


Beta = Annotated[float, Field(ge=0, lt=1)]


class OptimizerSpec(_Part):
    """How weights follow gradients."""

    kind: Literal["sgd", "adamw"] = "sgd"
    lr: float = Field(0.05, gt=0)
    momentum: float = Field(0.9, ge=0, lt=1)
    weight_decay: float = Field(5e-4, ge=0)
    nesterov: bool = False
    betas: tuple[Beta, Beta] = (0.9, 0.999)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov needs a momentum above 0")
        return self


class ScheduleSpec(_Part):
    """How the learning rate changes; warm-up, milestones and cycles in epochs."""

    kind: Literal["cosine", "constant", "step", "linear"] = "cosine"
    warmup: float = Field(0.0, ge=0, allow_inf_nan=False)
    cycle: Annotated[int, Field(ge=1)] | None = None  # after which a cosine starts anew
    milestones: tuple[float, ...] = ()
    factor: float = Field(0.1, gt=0, lt=1)


class LossSpec(_Part):
    """What is minimised; keys that are not listed here go to the loss."""

    model_config = ConfigDict(frozen=True, extra="allow")

    kind: str = "cross-entropy"

    @property
    def options(self) -> dict[str, Any]:
        """What is meant for the loss."""
        return dict(self.model_extra or {})


Schedule = Annotated[ScheduleSpec, BeforeValidator(_by_kind)]
Loss = Annotated[LossSpec, BeforeValidator(_by_kind)]
Augment = Literal["crop", "flip", "shift", "resized-crop"]


class NetworkOverrides(_Part):
    """What one network does differently from the others."""

    network: str | None = None
    options: dict[str, Any] | None = None
    lr: float | None = Field(None, gt=0)
    optimizer: OptimizerSpec | None = None
    schedule: Schedule | None = None
    loss: Loss | None = None
    seed: int | None = Field(None, ge=0, lt=2**63)


# Of the two forms of a value, only the one that is meant shall complain of it.
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
    """How to train each network."""

    networks: Networks = 5
    network: str = "resnet18"
    options: dict[str, Any] = Field(default_factory=dict)  # the network's own
    pretrained: str | None = None
    batch_ensemble: int | None = Field(None, ge=2)  # members that share one network's weights
    epochs: int = Field(ge=1)
    batch: int = Field(128, ge=1)
    optimizer: OptimizerSpec = OptimizerSpec()
    schedule: Schedule = ScheduleSpec()
    augment: tuple[Augment, ...] = ()
    length: int = Field(128, ge=2)  # tokens of a text; longer ones are cut
    loss: Loss = LossSpec()
    clean_only: bool = False  # an oracle: leave the wrong labels out
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    seed: int = Field(0, ge=0, lt=2**63)


class RecordSpec(_Part):
    """What to keep."""

    every: float = Field(1.0, ge=1e-6, allow_inf_nan=False)  # epochs
    splits: tuple[Literal["test", "train", "validation"], ...] = Field(("test",), min_length=1)
    probabilities: bool = False
    checkpoints: Checkpoints = 0  # equally spaced epochs
    averages: tuple[Literal["ema", "swa"], ...] = ()  # of weights, recorded beside the networks


class Spec(_Part):
    """One run."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    root: str | None = None  # the folder that paths start from; by default the working one
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
        for name in ("splits", "averages"):
            asked = getattr(self.record, name)
            if len(set(asked)) < len(asked):
                raise ValueError(f"record.{name} names one twice: {', '.join(asked)}")
        if isinstance(self.train.networks, tuple) and not self.train.networks:
            raise ValueError("train.networks is an empty list")
        if self.train.batch_ensemble and self.record.averages:
            raise ValueError("record.averages cannot be had of a BatchEnsemble")
        if len({"crop", "shift", "resized-crop"}.intersection(self.train.augment)) > 1:
            raise ValueError("train.augment takes one of crop, shift and resized-crop, not several")
        if round(1 / self.record.every, 6) % 1 and round(self.record.every, 6) % 1:
            raise ValueError("record.every must be a whole number of epochs, or 1 divided by one")
        return self

    def digest(self) -> str:
        """Return a short name for what is asked, whatever it is called and wherever its data lie.

        >>> spec = Spec(name="a", data={"kind": "cifar10", "path": "c10"}, train={"epochs": 9})
        >>> spec.digest() == spec.model_copy(update={"name": "b", "root": "data"}).digest()
        True
        """
        # Without what is left at its default: a key that is new changes no run that lacks it.
        asked = self.model_dump(mode="json", exclude=DIGEST_EXCLUDES, exclude_defaults=True)
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12]

    def resolve_path(self, path: str) -> Path:
        """Return where a path of this spec leads.

        >>> spec = Spec(name="a", root="data", data={"kind": "digits"}, train={"epochs": 9})
        >>> spec.resolve_path("c10").as_posix(), spec.resolve_path("/elsewhere/c10").as_posix()
        ('data/c10', '/elsewhere/c10')
        """
        return Path(self.root or "").expanduser() / Path(path).expanduser()

    def resolve_network(self, network: str) -> str:
        """Return a network's name; that of transformers as a path, where its folder is there."""
        folder = self.resolve_path(network.removeprefix(TRANSFORMERS))
        there = network.startswith(TRANSFORMERS) and folder.exists()
        return f"{TRANSFORMERS}{folder}" if there else network


class NetworkSpec(_Part):
    """One network of a run, everything settled."""

    number: int  # of its first, if it has members
    members: int = 1
    network: str
    options: dict[str, Any]
    optimizer: OptimizerSpec
    schedule: ScheduleSpec
    loss: LossSpec
    seed: int

    @property
    def numbers(self) -> range:
        """The numbers of the network, or of its members, in a record."""
        return range(self.number, self.number + self.members)


def network_specs(spec: Spec) -> tuple[NetworkSpec, ...]:
    """Settle what each network of a run is trained with.

    A BatchEnsemble is trained as one and recorded as so many.
    """
    train = spec.train
    asked = (
        train.networks
        if isinstance(train.networks, tuple)
        else (NetworkOverrides(),) * train.networks
    )
    return tuple(_settle(train, number, one) for number, one in enumerate(asked))


def _settle(train: TrainSpec, number: int, one: NetworkOverrides) -> NetworkSpec:
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
