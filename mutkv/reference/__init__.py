"""The engine under mutation: a small decoder with a KV cache, read in ten minutes.

Mutants copy this package whole and change one line of it; nothing here knows about them.
"""

from mutkv.reference.engine import Engine
from mutkv.reference.serve import Server
from mutkv.reference.session import Session

__all__ = ["Engine", "Server", "Session"]
