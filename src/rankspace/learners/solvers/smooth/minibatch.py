"""Stochastic gradient descent (Adam) on batches of queries.

The loss is the log of a mean over queries, and so no mean itself: its gradient is that of the mean
over the mean. The mean is kept as a running one over batches, and only the gradient is of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .components import Loss
from .lbfgs import Minimum

# Learning rate as a share of the root mean square of the parameters, decayed by a half cosine.
LEARNING_RATE = 0.1
BETA_1 = 0.9  # decay of the running means of gradients, and of the loss
BETA_2 = 0.99  # decay of the running means of squared gradients
MAX_BATCH_WEIGHT = 4.0  # a batch counts at most this much above the running mean
N_VALIDATION = 4096  # queries that estimate the loss of a start, and at the end
AVERAGED = 0.25  # share of the steps, the last ones, whose mean is returned
RECORD_EVERY = 10  # steps


def minimize_adam(
    loss: Loss,
    start: np.ndarray,
    n_queries: int,
    *,
    batch_size: int,
    max_iter: int,
    seed: int,
) -> Minimum:
    """Adam with a decaying learning rate on batches of queries; the last steps are averaged.

    It takes all steps and never reports convergence.
    """
    random = np.random.default_rng(seed)
    batches = _batches(n_queries, min(batch_size, n_queries), random)
    parameters = start.copy()
    average = np.zeros_like(start)
    first_moment = np.zeros_like(start)
    second_moment = np.zeros_like(start)
    losses = []
    running = None
    size = float(np.sqrt(np.mean(start**2))) or 1.0
    n_averaged = max(1, int(AVERAGED * max_iter))
    for step in range(1, max_iter + 1):
        value, gradient = loss.value_and_gradient(parameters, next(batches))
        running = _running_log_mean(running, value)
        gradient *= min(np.exp(value - running), MAX_BATCH_WEIGHT)
        first_moment = BETA_1 * first_moment + (1 - BETA_1) * gradient
        second_moment = BETA_2 * second_moment + (1 - BETA_2) * gradient**2
        direction = first_moment / (1 - BETA_1**step)
        direction /= np.sqrt(second_moment / (1 - BETA_2**step)) + np.finfo(float).tiny
        decay = 1 + np.cos(np.pi * step / max_iter)
        parameters -= LEARNING_RATE * size * 0.5 * decay * direction
        if step > max_iter - n_averaged:
            average += parameters / n_averaged
        if step % RECORD_EVERY == 0 or step == max_iter:
            losses.append(running)
    queries = sample_queries(n_queries, random)
    final_loss = loss.value_and_gradient(average, queries)[0]
    return Minimum(average, final_loss, losses, False, max_iter)


def sample_queries(n: int, random: np.random.Generator) -> np.ndarray:
    """A random sample of queries that estimates a loss well."""
    return np.sort(random.permutation(n)[:N_VALIDATION])


def _running_log_mean(running: float | None, value: float) -> float:
    """Log of the running mean of exp(value)."""
    if running is None:
        return value
    return float(np.logaddexp(np.log(BETA_1) + running, np.log(1 - BETA_1) + value))


def _batches(n: int, size: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    """Batches of all queries, reshuffled after each epoch."""
    while True:
        order = random.permutation(n)
        for start in range(0, n - size + 1, size):
            yield np.sort(order[start : start + size])
