"""The engine under mutation: a small decoder with a KV cache, read in ten minutes.

Mutants copy this package whole and change one line of it; nothing here knows about them.
"""

from mutkv.reference.engine import Engine, Session

__all__ = ["Engine", "Session"]
