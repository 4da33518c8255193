"""The file that ``mutkv mutants new`` writes: every key of a mutant with its meaning, to be filled in.

It is a file to edit and no form to answer, because most of its keys are found out by running ``mutants check``.
"""

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from mutkv.errors import UsageError
from mutkv.mutation.mutant import Kebab
from mutkv.schema import explain

TEMPLATE = '''\
id = "{id}"
class = ""            # what kind of fault, one word: position, mask, read, write, rotation, heads, ...
summary = ""          # what the changed line does wrong, in one line
# Two sentences: what is computed wrong, and what hides it.
mechanism = """
"""
origin = "synthetic"  # or "reported", with a [[reports]] table below
path = "cached"       # which path it changes: cached, both or full
acts = "always"       # or "decode": without any effect while the cache is empty
workloads = ["decode"]
features = []         # what an engine must have: rope, learned, alibi, gqa, window, static, ...
first_visible = "step 1"  # prefill, step 1, step 2, ..., later (step 3 or after), never
hidden_by = []        # detectors that miss the witness ("prefill"), and what would hide it ("steps = 0")
# equivalent = "bitwise"  # or "algebraic": a changed engine that is still correct, and then:
# reason = ""

[patch.reference]
file = ""             # a file of mutkv/reference/, such as engine.py
line = ""             # one whole source line of it, without its indentation, that occurs once
becomes = ""          # the line that takes its place
# within = "Session.extend"  # where the line occurs in several functions

# [[reports]]
# repo = "owner/name"
# number = 1
# confidence = "A"    # A: fixed or confirmed; B: a detailed report; C: thin; D: disputed
# note = ""

[witness]             # columns of a configuration in which the fault shows; what is left out has its default
prompt_length = 4
'''


def write_template(name: str, folder: Path) -> Path:
    """Write ``folder/name.toml`` for a mutant of this id; return its path.

    Raises:
        UsageError: the name will not do as an id, there is such a file, or the folder cannot be written.
    """
    try:
        TypeAdapter(Kebab).validate_python(name)
    except ValidationError as error:
        raise UsageError(f"mutant '{name}': {explain(error)}") from None
    path = folder / f"{name}.toml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE.format(id=name))
    except FileExistsError:
        raise UsageError(f"{path}: there is such a file: choose another name or folder") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror}): choose another --out") from None
    return path
