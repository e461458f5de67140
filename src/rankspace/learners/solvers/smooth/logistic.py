"""Logistic PARCA: a loss with an entropy penalty that divides features among components."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_expit

from .components import MapLoss


class LogisticLoss:
    """The loss of the map ``A = h(B)``, h the logistic function, plus ``beta`` times an entropy.

    The entropy is that of the memberships of a feature in the components, averaged over features:
    1 if all are equal. Memberships come from logs of h, so none is lost where h is near 0.
    """

    def __init__(self, loss: MapLoss, beta: float) -> None:
        self.loss = loss
        self.beta = beta

    def value_and_gradient(
        self, B: np.ndarray, queries: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        """The loss over all queries or some, and its gradient."""
        A = expit(B)
        value, gradient = self.loss.value_and_gradient(A, queries)
        gradient *= A * (1 - A)
        if self.beta and len(B) > 1:
            entropy, slopes = mean_entropy(B)
            value += self.beta * entropy
            gradient += self.beta * slopes
        return value, gradient


def memberships(B: np.ndarray) -> np.ndarray:
    """Membership of each feature in each component, ``h(B_kd) / sum over l of h(B_ld)``."""
    return np.exp(_log_memberships(B))


def _log_memberships(B: np.ndarray) -> np.ndarray:
    logs = log_expit(B)
    return logs - np.logaddexp.reduce(logs, axis=0)


def mean_entropy(B: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean entropy of the memberships of a feature, in units of log K, and its gradient.

    The derivative by B_md is ``p_md (1 - h_md) (sum over k of p_kd log p_kd - log p_md)``.
    """
    logs = _log_memberships(B)
    shares = np.exp(logs)
    entropies = -np.sum(shares * logs, axis=0)
    unit = B.shape[1] * np.log(len(B))
    slopes = shares * expit(-B) * (-entropies - logs)
    return float(entropies.sum() / unit), slopes / unit
