"""
How many dimensions does a metric need?
=======================================

FRML learns a metric of a given rank. A metric of low rank is stored and searched in fewer
dimensions.
"""

# %%
# Digits have 64 pixels. Held-out images rank the others; FRML stops when held-out training queries
# gain no more.
import matplotlib.pyplot as plt
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from rankspace import FRML, Index, LinearMetric, Relevance, evaluate
from rankspace.datasets import load_digits

digits = load_digits()
X, Q, y, query_labels = train_test_split(
    digits.X, digits.labels, train_size=600, test_size=300, random_state=0
)
relevance = Relevance.from_labels(y, query_labels=query_labels)


def mean_average_precision(metric=None):
    return evaluate(Index(X, metric).rank(Q), relevance, "map").means["map"]


ranks = [1, 2, 3, 5, 8, 12, 20]
values = {"FRML": [], "PCA": []}
for rank in ranks:
    learned = FRML(rank, n_triplets=30_000, random_state=0).fit(X, y).metric_
    values["FRML"].append(mean_average_precision(learned))
    pca = LinearMetric.from_transformer(PCA(rank).fit(X))
    values["PCA"].append(mean_average_precision(pca))
for name, scores in values.items():
    print(name, [round(score, 3) for score in scores])

# %%
# A handful of learned dimensions ranks better than all pixels.
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, scores in values.items():
    ax.plot(ranks, scores, "o-", label=name)
ax.axhline(mean_average_precision(), color="0.5", linestyle=":", label="all 64 pixels")
ax.set(xlabel="dimensions", ylabel="MAP of held-out digits", xticks=ranks)
ax.legend(frameon=False)
plt.show()
