"""
A kernel metric on two moons
============================

Where no linear map brings a class together, `KernelMLR` learns a metric in the space of a kernel.
"""

# %%
# Held-out points rank the training points.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from rankspace import MLR, Euclidean, KernelMLR, Relevance

X, y = make_moons(80, noise=0.12, random_state=0)
Q, query_labels = make_moons(200, noise=0.12, random_state=1)
relevance = Relevance.from_labels(y, query_labels=query_labels)
models = {
    "Euclidean": Euclidean().fit(X, y),
    "MLR": MLR(measure="auc").fit(X, y),
    "KernelMLR": KernelMLR(measure="auc").fit(X, y),
}
for name, model in models.items():
    print(name, round(model.score(X, relevance, queries=Q), 3))

# %%
# The distance of every place from one training point, dark where it is near.
query = X[np.argmin(X[:, 0])]
steps = np.linspace(-1.6, 2.6, 40), np.linspace(-1.1, 1.6, 30)
grid = np.stack(np.meshgrid(*steps), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 3, figsize=(10, 2.8), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    ranking = model.rank(query[None], grid)
    items, distances = ranking[0]
    values = np.empty(len(grid))
    values[items] = distances
    ax.contourf(*steps, values.reshape(30, 40), levels=12, cmap="Blues_r")
    ax.scatter(*X.T, c=np.where(y == 1, "#d55e00", "#222222"), s=8)
    ax.plot(*query, "*", color="#009e73", markersize=14)
    ax.set(title=name, xticks=[], yticks=[])
plt.show()
