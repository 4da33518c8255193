"""A scenario: the axes of a grid, the mutants to run on it and the table that sums it up; a strict TOML file."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, Strict, model_validator

from mutkv.configuration import CONFIGURATION_COLUMNS, Configuration, Positions, RopeScaling, Rotation, Weights
from mutkv.errors import UsageError, unknown_name
from mutkv.grid.structure import check_structure
from mutkv.kernels.arithmetic import Format, Order
from mutkv.resources import shipped
from mutkv.schema import Items, StrictModel, read_toml
from mutkv.studies import STUDIES
from mutkv.weights import check_weights

T = TypeVar("T")


def as_tuple(value: Any) -> Any:
    """Let an axis with one value be written without brackets."""
    return tuple(value) if isinstance(value, list) else (value,)


Axis = Annotated[tuple[T, ...], Strict(False), BeforeValidator(as_tuple), Field(min_length=1)]
LARGEST_SEED, LARGEST_LENGTH, LARGEST_SIZE = 2**31 - 1, 10**6, 4096
Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED)]
Count = Annotated[int, Field(ge=0, le=LARGEST_LENGTH)]
Size = Annotated[int, Field(ge=1, le=LARGEST_SIZE)]
Table = Literal["mutants", "exactness", "profile", "attention", "rounding", "length-profile", "batch-shape"]


class Axes(StrictModel):
    """Values per configuration column; the grid is their product. A column that is left out has its default."""

    workload: Axis[str] = ("decode",)
    seed: Axis[Seed] = (0,)
    depth: Axis[Size] = (1,)
    heads: Axis[Size] = (2,)
    kv_heads: Axis[Size] | Literal["heads"] = "heads"
    head_dim: Axis[Size] = (8,)
    vocab: Axis[Annotated[int, Field(ge=2, le=LARGEST_LENGTH)]] = (32,)
    prompt_length: Axis[Count] = (4,)
    steps: Axis[Count] = (12,)
    batch: Axis[Size] = (1,)
    positions: Axis[Positions] = ("rope",)
    rotation: Axis[Rotation] = ("write",)
    rope_scaling: Axis[RopeScaling] = ("none",)
    window: Axis[Count] = (0,)
    capacity: Axis[Count] = (0,)
    ring: Axis[bool] = (False,)
    block: Axis[Count] = (0,)
    pool: Axis[Size] = (64,)
    sharing: Axis[Size] = (1,)
    adapters: Axis[Count] = (0,)
    media: Axis[Count] = (0,)
    weights: Axis[Weights] = ("random",)
    sharpness: Axis[Annotated[float, Field(gt=0, allow_inf_nan=False)]] = (1.0,)
    storage: Axis[Format] = ("float64",)
    accumulator: Axis[Format] | Literal["storage"] = "storage"
    prefill_order: Axis[Order] = ("sequential",)
    decode_order: Axis[Order] | Literal["prefill_order"] = "prefill_order"

    def given(self) -> dict[str, Any]:
        """Return the columns that the file sets."""
        return {name: getattr(self, name) for name in self.model_fields_set}


FOLLOWED = {"kv_heads": "heads", "accumulator": "storage", "decode_order": "prefill_order"}
"""Columns that take another column's value unless they have an axis of their own."""


class Scenario(StrictModel):
    """A grid and what to run on it. ``variants`` override axes; the scenario is the union of their grids."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    summary: Annotated[str, Field(min_length=1)]
    study: str | None = None
    table: Table = "mutants"
    mutants: Items[str] = ()
    benign: Items[Literal["clean", "control"]] = ("clean", "control")
    axes: Axes
    variants: Items[Axes] = (Axes(),)

    @model_validator(mode="after")
    def _without_repeats(self) -> "Scenario":
        for name in ("benign", "mutants"):
            given = getattr(self, name)
            if len(set(given)) < len(given):
                raise ValueError(f"'{name}' names something twice: leave one out")
        return self

    @model_validator(mode="before")
    @classmethod
    def _a_study_without_control(cls, data: Any) -> Any:
        return {"benign": ("clean",), **data} if isinstance(data, dict) and "study" in data else data

    @model_validator(mode="after")
    def _with_a_known_study(self) -> "Scenario":
        if self.study is not None and self.study not in STUDIES:
            raise ValueError(str(unknown_name("study", self.study, STUDIES)))
        if self.study is not None and "table" in self.model_fields_set:
            raise ValueError("'table' has no meaning beside 'study', which has tables of its own: leave it out")
        if self.study is not None and "control" in self.benign:
            raise ValueError("a study measures one engine and has no control: leave it out of 'benign'")
        return self

    def configurations(self) -> Iterator[Configuration]:
        """Yield every point of the grid once, in the file's order; raise UsageError for one that cannot exist."""
        vocabularies = {size for axes in (self.axes, *self.variants) for size in axes.given().get("vocab", ())}
        if len(vocabularies) > 1:
            raise UsageError(f"{self.source_path}: axes: vocab: a scenario has one vocabulary, not {len(vocabularies)}")
        seen = set()
        for variant in self.variants:
            axes = Axes.model_construct(_fields_set=None, **(self.axes.given() | variant.given()))
            for configuration in product_of(axes):
                self._check(configuration)
                if configuration not in seen:
                    seen.add(configuration)
                    yield configuration

    def _check(self, configuration: Configuration) -> None:
        try:
            check_structure(configuration)
            check_weights(configuration)
            if self.study is not None:
                STUDIES[self.study].check(configuration)
        except UsageError as error:
            raise UsageError(f"{self.source_path}: axes: {error}") from None


def product_of(axes: Axes) -> Iterator[Configuration]:
    """Yield the product of the axes, the last column varying fastest."""
    columns = {name: getattr(axes, name) for name in CONFIGURATION_COLUMNS}
    free = {name: values for name, values in columns.items() if not isinstance(values, str)}
    for values in itertools.product(*free.values()):
        point = dict(zip(free, values, strict=True))
        for name, leader in FOLLOWED.items():
            point.setdefault(name, point[leader])
        yield Configuration(**point)


def find_scenario(name: str) -> Scenario:
    """Read a scenario by its shipped name or by the path of a TOML file."""
    if name.endswith(".toml"):
        return read_toml(Path(name), Scenario)
    known = scenario_files()
    if name not in known:
        raise unknown_name("scenario", name, known)
    return read_toml(known[name], Scenario)


def scenario_files() -> dict[str, Path]:
    """Return the shipped scenarios by name."""
    return dict(sorted((path.stem, path) for path in shipped("scenarios").glob("*.toml")))
