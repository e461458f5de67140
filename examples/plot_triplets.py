"""
How many comparisons does a metric need?
========================================

People who cannot say which class a thing belongs to can often say which of two things is more like
a third. MLR learns a metric from such triplets. Here their judgments follow two of ten features,
and one answer in ten is wrong.
"""

import matplotlib.pyplot as plt
import numpy as np

from rankspace import MLR, LinearMetric, Relevance

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 10))
truth = LinearMetric(np.eye(10)[:2])


def ask(n, error):
    """Triplets (a, b, c) where a person said that a is more like b than like c."""
    triplets = np.array([rng.permutation(len(X))[:3] for _ in range(n)])
    wrong = ~is_right(triplets, truth) != (rng.random(n) < error)
    triplets[wrong, 1:] = triplets[wrong, :0:-1]
    return triplets


def is_right(triplets, metric):
    a, b, c = X[triplets.T]
    return metric.pair_distances(a, b) < metric.pair_distances(a, c)


# %%
# The share of new comparisons that a metric answers rightly, by the number that it was learned
# from. All 200 things are in the judgments.
learned, new = ask(2000, error=0.1), ask(2000, error=0.0)
sizes = [30, 100, 300, 1000, 2000]
shares = []
for n in sizes:
    judged = Relevance.from_triplets(learned[:n], len(X))
    model = MLR(100.0, measure="auc", tol=0.02).fit(X, judged)
    shares.append(is_right(new, model.metric_).mean())
    print(f"{n:>5} triplets: {shares[-1]:.3f} of new ones right")
unchanged = is_right(new, LinearMetric.identity(10)).mean()

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.semilogx(sizes, shares, "o-", label="MLR")
ax.axhline(unchanged, color="grey", linestyle="--", label="Euclidean distance")
ax.set_xlabel("triplets learned from")
ax.set_ylabel("new triplets answered rightly")
ax.set_ylim(0.5, 1.0)
ax.legend()
plt.show()
