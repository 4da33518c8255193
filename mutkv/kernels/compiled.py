"""The compiled form of the exact sums: the same additions in the same order as ``plain``, bit for bit.

The summed index runs outside and the outputs inside, so the inner loops vectorise without changing any sum. There is
no fastmath (it would reorder or fuse), and exp and sqrt stay torch's, which both forms share: its float64 sqrt is
vectorised and not always correctly rounded, so numba's would differ in the last bit.
The first call compiles for some seconds; the code is cached on disk.
"""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def compiled(function: Any) -> Any:
    """Compile at the first call; keep the code on disk where there is a folder for it."""
    try:
        return numba.njit(cache=True, error_model="numpy", nogil=True)(function)
    except RuntimeError:  # neither the package nor the home folder can be written
        return numba.njit(error_model="numpy", nogil=True)(function)


@compiled
def padded_size(length: int) -> int:
    """Return the least power of two that is at least ``length``."""
    size = 1
    while size < length:
        size *= 2
    return size


@compiled
def fold(buffer: Array, size: int, width: int) -> None:
    """Add the upper half of the first ``size`` rows onto the lower until one is left."""
    while size > 1:
        size //= 2
        for k in range(size):
            for n in range(width):
                buffer[k, n] += buffer[k + size, n]


@compiled
def weighted_rows(weights: Array, rows: Array, pairwise: bool, buffer: Array, out: Array) -> None:
    """Write the sum over k of ``weights[k] * rows[k]`` to ``out``; weights [K], rows [K, N], buffer [>= K, N]."""
    length, width = rows.shape
    zero = weights.dtype.type(0.0)
    if pairwise:
        size = padded_size(length)
        for k in range(length):
            for n in range(width):
                buffer[k, n] = weights[k] * rows[k, n] + zero
        buffer[length:size] = zero
        fold(buffer, size, width)
        out[:] = buffer[0, :width]
        return
    out[:] = zero
    for k in range(length):
        for n in range(width):
            out[n] += weights[k] * rows[k, n]


@compiled
def product(left: Array, right: Array, pairwise: bool, out: Array) -> None:
    """``plain.product``: left [R, M, K], right [R, K, N], out [R, M, N]."""
    buffer = np.empty((padded_size(right.shape[1]), right.shape[2]), out.dtype)
    for r in range(left.shape[0]):
        for m in range(left.shape[1]):
            weighted_rows(left[r, m], right[r], pairwise, buffer, out[r, m])


@compiled
def mean_square(rows: Array, pairwise: bool, out: Array) -> None:
    """``plain.mean_square``: rows [R, M, W], out [R, M]."""
    replicas, count, width = rows.shape
    buffer = np.empty((padded_size(width), 1), rows.dtype)
    total, divisor = np.empty(1, rows.dtype), rows.dtype.type(width)
    for r in range(replicas):
        for m in range(count):
            weighted_rows(rows[r, m], rows[r, m].reshape(width, 1), pairwise, buffer, total)
            out[r, m] = total[0] / divisor


@compiled
def scale(rows: Array, root: Array, gain: Array, out: Array) -> None:
    """``plain.scale``: rows [R, M, W], root [R, M], gain [R, W]."""
    replicas, count, width = rows.shape
    for r in range(replicas):
        for m in range(count):
            for w in range(width):
                out[r, m, w] = rows[r, m, w] / root[r, m] * gain[r, w]


@compiled
def shifted_scores(
    query: Array, keys: Array, allowed: Array, bias: Array, divisor: float, pairwise: bool, out: Array
) -> None:
    """``plain.shifted_scores``: query [R, B, n, H, D], keys [R, B, T, H, D], bias [H, n, T], out [R, B, H, n, T]."""
    replicas, batch, length, heads, width = query.shape
    seen = keys.shape[2]
    buffer = np.empty((padded_size(width), seen), out.dtype)
    columns = np.empty((width, seen), out.dtype)
    root, lowest = out.dtype.type(divisor), out.dtype.type(-np.inf)
    for r in range(replicas):
        for b in range(batch):
            for h in range(heads):
                for t in range(seen):
                    columns[:, t] = keys[r, b, t, h]
                for q in range(length):
                    row = out[r, b, h, q]
                    weighted_rows(query[r, b, q, h], columns, pairwise, buffer, row)
                    for t in range(seen):
                        row[t] = row[t] / root
                    if bias.size:
                        for t in range(seen):
                            row[t] += bias[h, q, t]
                    highest = lowest
                    for t in range(seen):
                        row[t] = row[t] if allowed[q, t] else lowest
                        highest = max(highest, row[t])
                    for t in range(seen):
                        row[t] -= highest


@compiled
def mix(weights: Array, values: Array, pairwise: bool, out: Array) -> None:
    """``plain.mix``: weights [R, B, H, n, T], values [R, B, T, H, D], out [R, B, n, H, D]."""
    replicas, batch, heads, length, seen = weights.shape
    width = values.shape[4]
    buffer = np.empty((padded_size(seen), width), out.dtype)
    total, unit = np.empty(1, out.dtype), np.ones((seen, 1), out.dtype)
    share = np.empty(seen, out.dtype)
    for r in range(replicas):
        for b in range(batch):
            for h in range(heads):
                for q in range(length):
                    weighted_rows(weights[r, b, h, q], unit, pairwise, buffer, total)
                    for t in range(seen):
                        share[t] = weights[r, b, h, q, t] / total[0]
                    weighted_rows(share, values[r, b, :, h], pairwise, buffer, out[r, b, q, h])


@compiled
def rotate(pairs: Array, cos: Array, sin: Array, out: Array) -> None:
    """``plain.rotate``: pairs [R, B, n, H, D], angles [n, D / 2]."""
    replicas, batch, length, heads, width = pairs.shape
    half = width // 2
    for r in range(replicas):
        for b in range(batch):
            for q in range(length):
                for h in range(heads):
                    for d in range(half):
                        first, second = pairs[r, b, q, h, d], pairs[r, b, q, h, d + half]
                        out[r, b, q, h, d] = first * cos[q, d] - second * sin[q, d]
                        out[r, b, q, h, d + half] = first * sin[q, d] + second * cos[q, d]
