"""A mutant as data: the schema of ``mutants/<class>/<id>.toml``.

A mutant is a file and not a Python object so that anyone can add one without code, and so that what it claims (where
it acts, when it shows, what cannot see it) can be checked by a machine.
"""

import json
import re
import tomllib
from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)

from mutkv.configuration import Configuration
from mutkv.errors import UsageError
from mutkv.schema import Items, StrictModel, explain

RESERVED = ("clean", "control")
SHORTEST_PROMPT = 2
VISIBLE = re.compile(r"prefill|step [1-9][0-9]*|later|second chunk|second request|never")

Origin = Literal["seed", "reported", "synthetic"]
PathKind = Literal["cached", "both", "full"]
Equivalent = Literal["bitwise", "algebraic"]
Acts = Literal["always", "decode"]
Kind = Literal["faulty", "equivalent-bitwise", "equivalent-algebraic"]


def _kebab(text: str) -> str:
    """Refuse what would not do as a file name, a column value and a command-line word alike."""
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", text):
        raise ValueError(f"should be lower-case letters, digits and single dashes, found '{text}'")
    return text


# The columns as a strict model, so that a witness gets the same messages as everything else in the file.
_columns: dict[str, Any] = {field.name: (field.type, field.default) for field in fields(Configuration)}
_Columns = create_model("_Columns", __base__=StrictModel, **_columns)


def _configuration(data: Any) -> Configuration:
    """Return the configuration that a table of columns means, its other columns by default."""
    return Configuration(**_Columns.model_validate(data).model_dump())


Kebab = Annotated[str, AfterValidator(_kebab)]
Text = Annotated[str, Field(min_length=1)]
Witness = Annotated[Configuration, BeforeValidator(_configuration)]


class Patch(StrictModel):
    """One source line of a package and the line that takes its place."""

    file: Text
    """Relative to the package's folder."""
    line: Text
    """A whole source line, without its indentation."""
    becomes: Text
    within: Text | None = None
    """``Class.method`` or ``function`` that holds the line, where it repeats."""


class Report(StrictModel):
    """A public report of the same fault in a real engine."""

    repo: Text
    number: int
    confidence: Literal["A", "B", "C", "D"]
    note: str = ""


class Mutant(StrictModel):
    """A one-line change to an engine, with its provenance and its claims."""

    id: Kebab
    mutant_class: Kebab = Field(alias="class")
    summary: Text
    mechanism: str | None = None
    origin: Origin
    path: PathKind
    equivalent: Equivalent | None = None
    reason: Text | None = None
    acts: Acts
    workloads: Annotated[Items[Text], Field(min_length=1)]
    features: Items[Text] = ()
    first_visible: str
    hidden_by: Items[Text] = ()
    patch: Annotated[dict[str, Patch], Field(min_length=1)]
    reports: Items[Report] = ()
    witness: Witness

    def __hash__(self) -> int:
        return hash((self.id, self.patch_text))

    @field_validator("id")
    @classmethod
    def _not_reserved(cls, text: str) -> str:
        if text in RESERVED:
            raise ValueError(f"is the reserved name '{text}': choose another")
        return text

    @field_validator("first_visible")
    @classmethod
    def _known_visibility(cls, text: str) -> str:
        if not VISIBLE.fullmatch(text):
            known = "prefill, step N (N >= 1), later, second chunk, second request or never"
            raise ValueError(f"should be {known}, found '{text}'")
        return text

    @model_validator(mode="after")
    def _consistent(self) -> "Mutant":
        if self.equivalent and not self.reason:
            raise ValueError("an equivalent mutant needs the key 'reason': say why nothing can change")
        if self.reason and not self.equivalent:
            raise ValueError("'reason' is for equivalent mutants: add 'equivalent' or call it 'mechanism'")
        if self.equivalent and self.first_visible != "never":
            raise ValueError(f"'first_visible' of an equivalent mutant should be never, found '{self.first_visible}'")
        if self.witness.prompt_length < SHORTEST_PROMPT:
            found = self.witness.prompt_length
            raise ValueError(f"'witness.prompt_length' should be at least {SHORTEST_PROMPT}, found {found}")
        if self.witness.workload not in self.workloads:
            listed = ", ".join(self.workloads)
            raise ValueError(f"'witness.workload' should be one of workloads ({listed}), found {self.witness.workload}")
        self.hidden_configurations()
        return self

    @property
    def kind(self) -> Kind:
        """What a case of this mutant counts as in scoring."""
        match self.equivalent:
            case None:
                return "faulty"
            case "bitwise":
                return "equivalent-bitwise"
            case "algebraic":
                return "equivalent-algebraic"

    @property
    def patch_text(self) -> str:
        """Everything that decides what runs, as stable text for content keys; claims and provenance are left out."""
        rows = [[target, p.file, p.within, p.line, p.becomes] for target, p in sorted(self.patch.items())]
        return json.dumps(rows, ensure_ascii=False)

    def patch_for(self, package: str) -> Patch:
        """Return the patch for a package, keyed by its full dotted name or by the last part of it.

        Raises:
            UsageError: the mutant has no patch for this package.
        """
        for key in (package, package.rpartition(".")[2]):
            if key in self.patch:
                return self.patch[key]
        short, known = package.rpartition(".")[2], ", ".join(f"[patch.{key}]" for key in self.patch)
        raise UsageError(f"{self.source_path}: no patch for {package}: it has {known}, write [patch.{short}]")

    def witness_configuration(self) -> Configuration:
        """Return the configuration on which the mutant must be observable (unless it is equivalent)."""
        return self.witness

    def hidden_detectors(self) -> tuple[str, ...]:
        """Return the detectors of ``hidden_by``, which must not flag the witness."""
        return tuple(text for text in self.hidden_by if "=" not in text)

    def hidden_configurations(self) -> dict[str, Configuration]:
        """Return the overrides of ``hidden_by`` applied to the witness; the mutant must be unobservable on each."""
        return {text: self._overridden(text) for text in self.hidden_by if "=" in text}

    def _overridden(self, text: str) -> Configuration:
        """Return the witness with an override such as ``steps = 1`` or ``steps = 1, prompt_length = 2``."""
        try:
            changes = tomllib.loads(f"override = {{{text}}}")["override"]
        except tomllib.TOMLDecodeError:
            raise ValueError(f"'hidden_by' should hold detectors or 'column = value', found '{text}'") from None
        try:
            return _configuration(self.witness.columns() | changes)
        except ValidationError as error:
            raise ValueError(f"'hidden_by' holds '{text}': {explain(error)}") from None
