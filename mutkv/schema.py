"""Reading of TOML files into strict, frozen models, with every failure as one line that names file, key and fix.

Mutant and scenario files are written by hand; pydantic's own report is a paragraph about Python types.
"""

import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, PrivateAttr, Strict, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from mutkv.errors import UsageError, unknown_name

T = TypeVar("T")
Model = TypeVar("Model", bound="StrictModel")

Items = Annotated[tuple[T, ...], Strict(False)]
"""A TOML list, kept as a tuple so that models stay hashable."""

LONGEST_VALUE = 60

EXPECTED = {
    "bool_type": "true or false",
    "dataclass_type": "a table",
    "dict_type": "a table",
    "float_type": "a number",
    "finite_number": "a finite number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "int_type": "an integer",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
    "model_type": "a table",
    "string_type": "a string",
    "string_too_short": "a string that is not empty",
    "too_short": "a list or table that is not empty",
    "tuple_type": "a list",
}
"""What should have been there, in TOML's words, by pydantic's error type; fields in braces are the error's context."""


def known_keys(data: Any, names: Iterable[str]) -> Any:
    """Return a table unchanged, or refuse its first key that is not among ``names`` (for use in validators)."""
    names = list(names)
    for key in data if isinstance(data, dict) else ():
        if key not in names:
            hint = str(unknown_name("key", key, names)).removeprefix(f"unknown key '{key}': ")
            raise PydanticCustomError("unknown_key", "{hint}", {"key": key, "hint": hint})
    return data


class StrictModel(BaseModel):
    """A frozen model that converts no types and accepts no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    _source_path: Path = PrivateAttr(default=Path("<memory>"))

    @property
    def source_path(self) -> Path:
        """The file this was read from, for messages; no part of the content."""
        return self._source_path

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:
        # Before the fields: a misspelt key would otherwise be reported as a missing one.
        return known_keys(data, (field.alias or name for name, field in cls.model_fields.items()))


def read_toml(path: Path, model_class: type[Model]) -> Model:
    """Read one TOML file into a model.

    Raises:
        UsageError: the file cannot be read, is not TOML, or does not fit the model; always one line.
    """
    data = _read_table(path)
    try:
        model = model_class.model_validate(data)
    except ValidationError as error:
        raise UsageError(_one_line(f"{path}: {explain(error)}")) from None
    model._source_path = path
    return model


def _read_table(path: Path) -> dict[str, Any]:
    """Return a TOML file's top-level table."""
    try:
        # utf-8-sig: Windows editors put a mark in front, which TOML 1.0 would report as an invisible invalid key.
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file: check the path") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}): check that it is a readable file") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 at byte {error.start}: save the file as UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(_one_line(f"{path}: invalid TOML: {error}")) from None


def explain(error: ValidationError) -> str:
    """Return the first problem of a validation in one phrase; misspelt keys first, for they explain the others."""
    return _phrase(min(error.errors(), key=lambda problem: problem["type"] != "unknown_key"))


def _phrase(problem: ErrorDetails) -> str:
    """Return one pydantic problem as: key, what is wrong, the fix."""
    kind, context = problem["type"], problem.get("ctx", {})
    key = _dotted(problem["loc"])
    if kind == "unknown_key":
        return f"unknown key '{_dotted((*problem['loc'], context['key']))}': {context['hint']}"
    if kind == "missing":
        return f"missing key '{key}': add it"
    if kind == "value_error":
        return f"'{key}' {context['error']}" if key else str(context["error"])
    expected = EXPECTED.get(kind)
    should = f"should be {expected.format(**context)}" if expected else f"is not valid ({problem['msg']})"
    return f"'{key}' {should}, found {_shown(problem['input'])}"


def _dotted(location: tuple[int | str, ...]) -> str:
    """Return a location in TOML's spelling: ``reports[0].repo``."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _shown(value: Any) -> str:
    """Return a value as a TOML file spells it, cut to a readable length."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _one_line(text: str) -> str:
    """Escape the line breaks that a quoted key or value may bring in."""
    return text.replace("\r", "\\r").replace("\n", "\\n")
