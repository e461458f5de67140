"""Piecewise-linear interpolation between knots, with a curve for each column."""

import numpy as np

from ..compiled import kernel

ROWS = 64  # processed together, so that the knots of a column stay in the cache
ZERO, ONE = np.float32(0), np.float32(1)


@kernel
def follow_curves(X, knots, values, out):
    """Linear interpolation of each column of X (n, d) between its knots, flat outside them.

    ``knots`` and ``values`` (d, 2^b), neither falling in a row; all of one float type. The search
    takes b steps without a branch, as a branch would be mispredicted half the time.
    """
    n_knots = knots.shape[1]
    for first in range(0, X.shape[0], ROWS):
        for j in range(X.shape[1]):
            knot, value = knots[j], values[j]
            for i in range(first, min(first + ROWS, X.shape[0])):
                x = X[i, j]
                at, half = 0, n_knots // 2
                while half > 0:
                    at += half * (knot[at + half] <= x)
                    half //= 2
                after = min(at + 1, n_knots - 1)
                width = knot[after] - knot[at]
                share = min(max(x - knot[at], ZERO), width)
                share /= width if width > 0 else ONE
                out[i, j] = value[at] + share * (value[after] - value[at])
