"""A distance between queries and items that are mapped each in their own way."""

from __future__ import annotations

from .embedding import BilinearMetric


class TwoMapMetric(BilinearMetric):
    """Euclidean distance of mapped queries from mapped items: ``d(q, x) = |A q + a - B x|``.

    Parameters
    ----------
    left, right, offset, parameters
        ``A``, ``B``, ``a`` and how it was learned, as for `BilinearMetric`.

    Examples
    --------
    >>> from rankspace import TwoMapMetric
    >>> metric = TwoMapMetric([[1.0, 0.0]], [[0.0, 1.0]])
    >>> metric.distances([[2.0, 0.0]], [[0.0, 3.0], [5.0, 1.5]])
    array([[1. , 0.5]])
    """

    kind = "two-map"
    inner = False
