"""Applying a mutant in place, to an engine that cannot be copied: the code of one function is replaced for a while.

Everyone who holds the function (instances, subclasses, other modules) runs the mutated line until the clean code is
put back. Generators and closures that were made meanwhile keep it, hence a process of its own for each swap.
"""

import ast
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from mutkv.errors import UsageError
from mutkv.mutation.mutant import Mutant, Patch
from mutkv.mutation.patch import definitions, first_line, holds, patched_source
from mutkv.mutation.reach import FLAG, Reach, instrument
from mutkv.mutation.sources import locate, module_name, read_source, remember_source

Function = ast.FunctionDef | ast.AsyncFunctionDef


@contextmanager
def swap(mutant: Mutant, package: str) -> Iterator[Reach]:
    """Run the body with the mutant's line in the package's own function; yields whether that line has run.

    Raises:
        UsageError: the patch does not fit, the line is outside every function's body, or the function cannot be found
            at run time or has other free variables than its patched form.
    """
    patch = mutant.patch_for(package)
    module = importlib.import_module(module_name(package, patch.file))
    if FLAG in vars(module):
        raise UsageError(f"{mutant.source_path}: {module.__name__} already holds a mutant: swap one at a time")
    try:
        function, code = _prepared(patch, locate(package, patch.file), module, mutant.id)
    except UsageError as error:
        raise UsageError(f"{mutant.source_path}: {error}") from error.__cause__
    reach, clean = Reach(), function.__code__
    vars(module)[FLAG] = reach.flag
    function.__code__ = code
    try:
        yield reach
    finally:
        function.__code__ = clean
        del vars(module)[FLAG]


def _prepared(patch: Patch, path: Path, module: ModuleType, mutant_id: str) -> tuple[FunctionType, CodeType]:
    """Return the live function that holds the line, and its mutated code."""
    source = read_source(path)
    new_source, line = patched_source(patch, source, patch.file)
    name, clean_node = _outermost_function(ast.parse(source), line, patch.file)
    tree = ast.parse(new_source)
    _, node = _outermost_function(tree, line, patch.file)
    if _signature(node) != _signature(clean_node):
        raise UsageError(f"{patch.file}: line {line} changes the signature of {name}: swap replaces its body alone")
    function = _live_function(module, name, first_line(clean_node), patch.file)
    filename = f"{path} [{mutant_id}]"
    remember_source(filename, new_source)
    code = _code_of(compile(instrument(tree, line), filename, "exec", dont_inherit=True), name, first_line(node))
    if code.co_freevars != function.__code__.co_freevars:
        clean_names, names = (", ".join(c.co_freevars) or "none" for c in (function.__code__, code))
        advice = "choose a line that uses the same outer names"
        raise UsageError(f"{patch.file}: free variables of {name} change from {clean_names} to {names}: {advice}")
    return function, code


def _outermost_function(tree: ast.Module, line: int, file: str) -> tuple[str, Function]:
    """Return the function at module or class level that holds a line; inner functions are part of its code."""
    for name, node in definitions(tree):
        if isinstance(node, Function) and holds(node, line):
            return name, node
    raise UsageError(f"{file}: line {line} is outside every function: swap replaces a function's body")


def _signature(node: Function) -> list[str]:
    """Return what is evaluated when the function is defined, and so is not part of its code."""
    return [ast.dump(part) for part in (node.args, *node.decorator_list)]


def _code_of(module_code: CodeType, name: str, line: int) -> CodeType:
    """Return the code of a function at module or class level, inside its module's code."""
    for code in (constant for constant in module_code.co_consts if isinstance(constant, CodeType)):
        if code.co_qualname == name and code.co_firstlineno == line:
            return code
        if name.startswith(f"{code.co_qualname}."):
            return _code_of(code, name, line)
    raise LookupError(name)


def _live_function(module: ModuleType, name: str, line: int, file: str) -> FunctionType:
    """Return the function object that a definition made, from under its descriptors and decorators."""
    *classes, last = name.split(".")
    members = vars(module)
    for part in classes:
        members = getattr(members.get(part), "__dict__", {})
    if last.startswith("__") and not last.endswith("__") and classes:
        last = f"_{classes[-1].lstrip('_')}{last}"
    for function in _functions(members.get(last)):
        if function.__code__.co_firstlineno == line:
            return function
    raise UsageError(f"{file}: {name} cannot be found at run time (a decorator hides it): choose another function")


def _functions(value: object) -> Iterator[FunctionType]:
    """Yield the plain functions under a property, static or class method, cache or ``functools.wraps`` decorator."""
    if isinstance(value, FunctionType):
        yield value
    for name in ("__wrapped__", "fget", "fset", "fdel", "func"):
        inner = getattr(value, name, None)
        if inner is not None:
            yield from _functions(inner)
