"""Descent of a loss over some of the queries at a time.

The loss is the log of a mean over queries, and so no mean itself: its gradient is that of the mean
over the mean. The mean is kept as a running one over batches, and only the gradient is of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .components import Descent, Loss

STEP = (
    0.1  # of the root mean square of the parameters, falling to 0 along a half cosine
)
MEMORY = 0.9  # of the running means of gradients
LONG_MEMORY = 0.99  # of those of squares
MOST_OF_THE_MEAN = 4.0  # a batch counts at most so much above the running mean
JUDGING = 4096  # queries that estimate the loss, of a start and at the end
AVERAGED = 0.25  # of the steps, the last: their mean is returned
EVERY = 10  # steps between two rows of the record


def descend_in_batches(
    loss: Loss,
    start: np.ndarray,
    n_queries: int,
    *,
    batch_size: int,
    max_iter: int,
    seed: int,
) -> Descent:
    """Adam over batches of queries, with the mean of the last steps as its answer.

    It takes all the steps it is given, and never says that it stood still.
    """
    random = np.random.default_rng(seed)
    batches = _batches(n_queries, min(batch_size, n_queries), random)
    parameters, mean, losses = start.copy(), np.zeros_like(start), []
    first, second, running = np.zeros_like(start), np.zeros_like(start), None
    size = float(np.sqrt(np.mean(start**2))) or 1.0
    n_averaged = max(1, int(AVERAGED * max_iter))
    for step in range(1, max_iter + 1):
        value, gradient = loss.value_and_gradient(parameters, next(batches))
        running = value if running is None else _mean_of_exponentials(running, value)
        gradient *= min(np.exp(value - running), MOST_OF_THE_MEAN)
        first = MEMORY * first + (1 - MEMORY) * gradient
        second = LONG_MEMORY * second + (1 - LONG_MEMORY) * gradient**2
        direction = first / (1 - MEMORY**step)
        direction /= np.sqrt(second / (1 - LONG_MEMORY**step)) + np.finfo(float).tiny
        parameters -= (
            STEP * size * 0.5 * (1 + np.cos(np.pi * step / max_iter)) * direction
        )
        if step > max_iter - n_averaged:
            mean += parameters / n_averaged
        if step % EVERY == 0 or step == max_iter:
            losses.append(float(running))
    judged = loss.value_and_gradient(mean, some_queries(n_queries, random))[0]
    return Descent(mean, judged, losses, False, max_iter)


def some_queries(n: int, random: np.random.Generator) -> np.ndarray:
    """As many queries as estimate a loss well."""
    return np.sort(random.permutation(n)[:JUDGING])


def _mean_of_exponentials(running: float, value: float) -> float:
    """Log of the running mean of exp(value)."""
    return float(np.logaddexp(np.log(MEMORY) + running, np.log(1 - MEMORY) + value))


def _batches(n: int, size: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    """Parts of all queries, in a new order each time they are through."""
    while True:
        order = random.permutation(n)
        for at in range(0, n - size + 1, size):
            yield np.sort(order[at : at + size])
