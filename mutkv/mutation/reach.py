"""Telling whether the mutated line ran: a flag that the patched code itself sets, just before that line.

A case whose line never ran says nothing about a checker. A trace function would slow every line of the engine; one
store into a list costs tens of nanoseconds and only where the mutant is.
"""

import ast

from mutkv.mutation.patch import first_line

FLAG = "__mutkv_reached__"
"""Global of the patched module; dunder on both sides so that no class mangles it and no star import takes it."""


class Reach:
    """Whether a mutated line has run since the last reset."""

    def __init__(self) -> None:
        self.flag = [False]
        """What the patched code stores into."""
        self._at_import = False

    @property
    def reached(self) -> bool:
        """Whether the line has run since the last reset, or while its module was imported: what it made there stays."""
        return self.flag[0]

    def reset_reached(self) -> None:
        """Forget that the line has run, unless it ran at import."""
        self.flag[0] = self._at_import


def instrument(tree: ast.Module, line: int) -> ast.Module:
    """Insert the store into a patched module's tree, just before the statement that holds the mutated line.

    A branch's own line (``else:``, ``except …:``, ``case …:``) counts as run when the branch is entered, an ``elif``
    when its condition is evaluated, a ``def`` line when the function is called: a default acts there.
    """
    block: list[ast.stmt] = tree.body
    while True:
        index = next(i for i, statement in enumerate(block) if line <= (statement.end_lineno or 0))
        inner = _block_within(block[index], line)
        if inner is None:
            break
        block = inner
    index = max(index, _prologue(block))
    # In the place of the statement it precedes, so that debuggers and coverage see no line that did not run.
    statement = block[min(index, len(block) - 1)]
    store = ast.parse(f"{FLAG}[0] = True").body[0]
    for node in ast.walk(store):
        ast.copy_location(node, statement)
    block.insert(index, store)
    return tree


def _block_within(statement: ast.stmt, line: int) -> list[ast.stmt] | None:
    """Return the block of a compound statement that holds or is opened by a line; None when the line is its head."""
    blocks = _blocks(statement)
    if not blocks or line < statement.lineno:
        return None
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return statement.body
    # A match statement's head ends before its first case, any other's before its first block.
    head = statement.subject.end_lineno or 0 if isinstance(statement, ast.Match) else first_line(blocks[0][0]) - 1
    if line <= max(head, statement.lineno):
        return None
    return next(block for block in blocks if line <= (block[-1].end_lineno or 0))


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    """Return the blocks of a compound statement in source order."""
    owners = [statement, *getattr(statement, "handlers", []), *getattr(statement, "cases", [])]
    blocks = [getattr(owner, name, []) for owner in owners for name in ("body", "orelse", "finalbody")]
    return sorted((block for block in blocks if block), key=lambda block: block[0].lineno)


def _prologue(block: list[ast.stmt]) -> int:
    """Return how many statements must stay first: a docstring and ``from __future__`` imports."""
    count = 0
    for statement in block:
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not (docstring or future):
            break
        count += 1
    return count
