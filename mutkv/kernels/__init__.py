"""Arithmetic of the engines: ordered exact sums, their compiled form, and torch's native kernels.

Mutants never touch this package: a mutated copy of an engine shares it with the clean engine.
"""

from mutkv.kernels.arithmetic import DTYPES, Arithmetic
from mutkv.kernels.kernel import Kernel, kernel_for

__all__ = ["DTYPES", "Arithmetic", "Kernel", "kernel_for"]
