"""Applying a mutant to an isolated copy of a package, so that mutated and clean engine live side by side.

The copy is a sibling of the package with a name of its own (``mutkv.reference`` becomes
``mutkv.reference__1f0c…``), imported by Python's own machinery from the same source files, of which one is
patched. Its modules stay registered under that name, as pickle, dataclasses and late imports need; nothing of the
clean package is touched.
"""

import ast
import functools
import hashlib
import importlib
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from mutkv.errors import UsageError
from mutkv.mutation.mutant import Mutant, Patch
from mutkv.mutation.patch import patched_source
from mutkv.mutation.reach import FLAG, Reach, instrument
from mutkv.mutation.redirect import redirect
from mutkv.mutation.sources import locate, module_name, package_spec, read_source, remember_source


class MutatedPackage(Reach):
    """An imported copy of a package with one line changed; ``reached`` says whether that line has run."""

    def __init__(self, package: str, mutant_id: str, patch: Patch) -> None:
        super().__init__()
        digest = hashlib.sha256(f"{mutant_id} {patch.model_dump_json()}".encode()).hexdigest()[:12]
        self.package = package
        self.name = f"{package}__{digest}"  # without the id: a live checker can see the name of its engine's module
        self.path = locate(package, patch.file)
        self.source, self.line_number = patched_source(patch, read_source(self.path), patch.file)
        self.filename = f"{self.path} [{mutant_id}]"
        self._import(module_name(self.name, patch.file))

    def module(self, name: str = "") -> ModuleType:
        """Return a module of the copy by its name inside the package; the package itself without a name."""
        return importlib.import_module(f"{self.name}.{name}" if name else self.name)

    def code(self, fullname: str, path: Path) -> CodeType:
        """Return the code of one of the copy's modules, from its clean source file."""
        if path == self.path:
            filename = self.filename
            remember_source(filename, self.source)
            tree = instrument(ast.parse(self.source, filename), self.line_number)
        else:
            filename = str(path)
            tree = ast.parse(read_source(path), filename)
        clean = self.package + fullname.removeprefix(self.name)
        try:
            redirect(tree, self.package, self.name, clean if path.stem == "__init__" else clean.rpartition(".")[0])
        except UsageError as error:
            raise UsageError(f"{path}, {error}") from None
        return compile(tree, filename, "exec", dont_inherit=True)

    def _import(self, patched_module: str) -> None:
        """Import the patched module, or leave no trace of the copy."""
        finder = _Finder(self)
        sys.meta_path.insert(0, finder)
        try:
            importlib.import_module(patched_module)
        except BaseException:
            sys.meta_path.remove(finder)
            self._forget()
            raise
        self._at_import = self.reached

    def _forget(self) -> None:
        """Remove what the import system keeps of the copy; its source stays, for the traceback of the failure."""
        for name in [name for name in sys.modules if name == self.name or name.startswith(f"{self.name}.")]:
            del sys.modules[name]
        parent, _, leaf = self.name.rpartition(".")
        if parent:
            vars(sys.modules[parent]).pop(leaf, None)


class _Loader(SourceFileLoader):
    """Loads one module of a copy; never reads or writes compiled files."""

    def __init__(self, copy: MutatedPackage, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self._copy = copy

    def get_code(self, fullname: str) -> CodeType:
        return self._copy.code(fullname, Path(self.path))

    def exec_module(self, module: ModuleType) -> None:
        vars(module)[FLAG] = self._copy.flag
        super().exec_module(module)


class _Finder(MetaPathFinder):
    """Finds the modules of one copy where Python finds those of the clean package."""

    def __init__(self, copy: MutatedPackage) -> None:
        self._copy = copy

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == self._copy.name:
            return self._package_spec(fullname)
        if not fullname.startswith(f"{self._copy.name}."):
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(self._copy, fullname, spec.loader.path)
        return spec

    def _package_spec(self, fullname: str) -> ModuleSpec | None:
        clean = package_spec(self._copy.package)
        places = list(clean.submodule_search_locations or ())
        if clean.origin is None:
            raise UsageError(f"package '{self._copy.package}' has no __init__.py: add one, so that it can be copied")
        loader = _Loader(self._copy, fullname, clean.origin)
        return spec_from_file_location(fullname, clean.origin, loader=loader, submodule_search_locations=places)


def load_copy(package: str, mutant: Mutant) -> MutatedPackage:
    """Return the copy of a package with the mutant's patch applied; built once per process, package and patch.

    Raises:
        UsageError: the patch does not fit the package, or the patched module raises when imported (its error is the
            cause); the clean package and ``sys.modules`` are as before.
    """
    patch = mutant.patch_for(package)
    try:
        return _load(package, mutant.id, patch)
    except UsageError as error:
        raise UsageError(f"{mutant.source_path}: {error}") from error.__cause__
    except Exception as error:
        detail = " ".join(str(error).split())
        text = f"{patch.file} raises {type(error).__name__} when it is imported ({detail}): mend 'becomes'"
        raise UsageError(f"{mutant.source_path}: {text}") from error


@functools.cache
def _load(package: str, mutant_id: str, patch: Patch) -> MutatedPackage:
    return MutatedPackage(package, mutant_id, patch)
