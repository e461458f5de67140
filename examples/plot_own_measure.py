"""
Teach MLR a measure of your own
===============================

Rank-biased precision (Moffat & Zobel 2008) models a reader who goes on to the next item with a
given probability. `MLR` learns any measure that is a sum over the relevant items.
"""

# %%
# The function returns what the i-th relevant item adds with g irrelevant items above it.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from rankspace import MLR, Index
from rankspace.datasets import load_wine
from rankspace.display import ConvergenceDisplay


def rank_biased_precision(n_relevant, n_irrelevant, p=0.9):
    i, g = np.arange(n_relevant)[:, None], np.arange(n_irrelevant + 1)
    return (1 - p) * p ** (i + g)


wine = load_wine()
X, Q, y, query_labels = train_test_split(
    wine.X, wine.labels, test_size=0.5, random_state=0
)
scaler = StandardScaler().fit(X)
X, Q = scaler.transform(X), scaler.transform(Q)
model = MLR(measure=rank_biased_precision).fit(X, y)
print("certified:", model.gap_ <= model.tol)

# %%
# The bounds meet, as for the measures that are built in.
ConvergenceDisplay.from_estimator(model)
plt.show()

# %%
# The measure of held-out queries, from its definition.
for name, metric in (("Euclidean", None), ("MLR", model.metric_)):
    ranking = Index(X, metric).rank(Q)
    hits = [
        y[items] == label
        for (items, _), label in zip(ranking, query_labels, strict=True)
    ]
    values = [(0.1 * 0.9 ** np.arange(len(hit)) * hit).sum() for hit in hits]
    print(f"{name}: {np.mean(values):.3f}")
