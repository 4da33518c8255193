"""Replacing one source line by another, or saying precisely why that cannot be done.

A mutant that silently patched the wrong line, or none, would be scored as a bug that no checker can see.
"""

import ast
from collections.abc import Iterator
from difflib import get_close_matches, unified_diff

from mutkv.errors import UsageError, unknown_name
from mutkv.mutation.mutant import Mutant, Patch
from mutkv.mutation.sources import locate, read_source

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def patched_source(patch: Patch, source: str, filename: str) -> tuple[str, int]:
    """Return the source with one line replaced, and that line's 1-based number; ``filename`` is for messages.

    Raises:
        UsageError: the line is not there or not unique, more than one line is involved, nothing would change, or the
            result does not compile.
    """
    line, becomes = _one_line("line", patch.line, filename), _one_line("becomes", patch.becomes, filename)
    if becomes == line:
        raise UsageError(f"{filename}: 'becomes' is the same as 'line': change it")
    if becomes.startswith("#"):
        raise UsageError(f"{filename}: 'becomes' holds no code: write pass to drop a statement")
    tree = _parse(source, filename, "before it is patched")
    # Not splitlines: a form feed ends a line there, but not for Python.
    lines = source.split("\n")
    number = _line_number(patch, lines, tree, filename)
    old = lines[number - 1]
    lines[number - 1] = old[: len(old) - len(old.lstrip())] + becomes
    new_source = "\n".join(lines)
    _parse(new_source, filename, f"with 'becomes' at line {number}")
    return new_source, number


def diff(mutant: Mutant, target: str = "mutkv.reference") -> str:
    """Return the mutant's change to a package as a unified diff, which ``git apply`` accepts."""
    patch = mutant.patch_for(target)
    source = read_source(locate(target, patch.file))
    new_source, _ = patched_source(patch, source, patch.file)
    name = f"{target.replace('.', '/')}/{patch.file}"
    rows = unified_diff(_lines(source), _lines(new_source), f"a/{name}", f"b/{name}")
    return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)


def definitions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Definition]]:
    """Yield every class and function with its dotted name, outer ones first."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Definition):
            yield prefix + node.name, node
            yield from definitions(node, f"{prefix}{node.name}.")
        else:
            yield from definitions(node, prefix)


def first_line(node: ast.stmt) -> int:
    """Return the line on which a statement starts, decorators included."""
    decorators = node.decorator_list if isinstance(node, Definition) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def holds(node: ast.stmt, line: int) -> bool:
    """Whether a source line belongs to a statement."""
    return first_line(node) <= line <= (node.end_lineno or node.lineno)


def _line_number(patch: Patch, lines: list[str], tree: ast.Module, filename: str) -> int:
    """Return the 1-based number of the one line that the patch means."""
    wanted = patch.line.strip()
    everywhere = [number for number, text in enumerate(lines, 1) if text.strip() == wanted]
    found = [number for number in everywhere if _in_scope(patch.within, number, tree, filename)]
    place = f" in {patch.within}" if patch.within else ""
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{filename}: line '{wanted}' occurs {_times(found)}{place}: {_narrower(found, tree)}")
    if everywhere:
        hint = f"it is at line {everywhere[0]}, outside: mend 'within'"
    else:
        near = get_close_matches(wanted, [text.strip() for text in lines], n=1)
        number = next((number for number, text in enumerate(lines, 1) if near and text.strip() == near[0]), 0)
        hint = f"did you mean line {number}, '{near[0]}'?" if near else "copy one whole line of the file"
    raise UsageError(f"{filename}: line '{wanted}' not found{place}: {hint}")


def _in_scope(within: str | None, number: int, tree: ast.Module, filename: str) -> bool:
    """Whether a line lies in the named definition (in any of them: a property's getter and setter share a name)."""
    if within is None:
        return True
    named = [node for name, node in definitions(tree) if name == within]
    if not named:
        raise UsageError(f"{filename}: {unknown_name('within', within, (name for name, _ in definitions(tree)))}")
    return any(holds(node, number) for node in named)


def _narrower(numbers: list[int], tree: ast.Module) -> str:
    """Return how to tell the places of a repeated line apart."""
    owners = [[name for name, node in definitions(tree) if holds(node, number)] for number in numbers]
    innermost = [names[-1] if names else "" for names in owners]
    unique = [name for name in innermost if name and innermost.count(name) == 1]
    if not unique:
        return "no 'within' tells them apart, so choose another line"
    return "name one place, " + " or ".join(f'within = "{name}"' for name in unique)


def _times(numbers: list[int]) -> str:
    """Return how often and where: ``2 times (lines 3 and 9)``."""
    *first, last = (str(number) for number in numbers)
    return f"{len(numbers)} times (lines {', '.join(first)} and {last})"


def _one_line(key: str, text: str, filename: str) -> str:
    """Return a patch's text stripped, or refuse it when it is not exactly one line."""
    rows = text.strip().splitlines()
    if len(rows) != 1:
        raise UsageError(f"{filename}: '{key}' is {len(rows)} lines: a mutant replaces exactly one line by one line")
    return rows[0]


def _lines(text: str) -> list[str]:
    """Split at newlines, keeping them."""
    rows = [f"{row}\n" for row in text.split("\n")]
    return [*rows[:-1], rows[-1][:-1]] if rows[-1] != "\n" else rows[:-1]


def _parse(source: str, filename: str, when: str) -> ast.Module:
    """Return the syntax tree, or the compiler's complaint as one line."""
    try:
        compile(source, filename, "exec", dont_inherit=True)
        return ast.parse(source, filename)
    except (SyntaxError, ValueError) as error:
        text = f"{error.msg} at line {error.lineno}" if isinstance(error, SyntaxError) else str(error)
        raise UsageError(f"{filename}: does not compile {when}: {text}") from None
