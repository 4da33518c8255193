"""Leading a package's imports of its own modules to a copy of it, by rewriting them in the syntax tree.

Rewriting is visible in no other module and needs no import hook that guesses who is asking. What cannot be seen in an
import statement (``importlib.import_module`` of a string, an attribute chain from ``import mutkv``) still reaches the
clean package.
"""

import ast
from importlib.util import resolve_name

from mutkv.errors import UsageError


def redirect(tree: ast.Module, package: str, copy: str, parent: str) -> None:
    """Rewrite a module's imports from ``package`` to its sibling ``copy``, in place.

    ``parent`` is the clean package that relative imports of this module start from.

    Raises:
        UsageError: an ``import package.module`` without ``as``, which binds only the first name of the chain.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            _redirect_from(node, package, copy, parent)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                _redirect_plain(alias, package, copy)


def _redirect_from(node: ast.ImportFrom, package: str, copy: str, parent: str) -> None:
    """Redirect ``from a.b import c``, absolute or relative."""
    module = resolve_name("." * node.level + (node.module or ""), parent)
    for alias in node.names:
        if f"{module}.{alias.name}" == package:
            alias.asname, alias.name = alias.asname or alias.name, copy.rpartition(".")[2]
    node.module, node.level = _renamed(module, package, copy), 0


def _redirect_plain(alias: ast.alias, package: str, copy: str) -> None:
    """Redirect one name of ``import a, b.c as d``."""
    renamed = _renamed(alias.name, package, copy)
    if renamed == alias.name:
        return
    if alias.asname is None and "." in alias.name:
        parent, _, leaf = alias.name.rpartition(".")
        advice = f"write 'from {parent} import {leaf}'"
        raise UsageError(f"line {alias.lineno}: 'import {alias.name}' cannot lead to a mutated copy: {advice}")
    alias.asname, alias.name = alias.asname or alias.name, renamed


def _renamed(module: str, package: str, copy: str) -> str:
    """Return the copy's name of one of the package's modules, or the name of any other unchanged."""
    own = module == package or module.startswith(f"{package}.")
    return copy + module.removeprefix(package) if own else module
