"""
Rows without a label: what neighbours tell
==========================================

Four labels of 200 may point in a wrong direction. The other rows have no label, but they have
neighbours: a graph-Laplacian regulariser keeps neighbours near each other, so that the direction in
which a class is long counts little.
"""

import matplotlib.pyplot as plt
import numpy as np

from rankspace import MLR, GraphMLR, Relevance

rng = np.random.default_rng(3)
y = np.arange(200) % 2
long, across = rng.uniform(-8, 8, size=200), 0.03 * rng.normal(size=200) + y
X = np.column_stack([long + across, long - across])

# %%
# The classes are long and side by side; the labelled rows of one are more to the left. The weight
# of the graph is large because its edges are short. On your data, choose it on validation rows.
places = np.abs(long - np.where(y == 1, 1.0, -1.0))
known = np.concatenate(
    [np.flatnonzero(y == c)[places[y == c].argsort()[:2]] for c in (0, 1)]
)
labels = np.full(200, -1)
labels[known] = y[known]
judged = Relevance.from_labels(labels, unlabelled=-1, unjudged="ignore")
models = {
    "MLR": MLR(100.0, measure="auc").fit(X, judged),
    "GraphMLR": GraphMLR(100.0, graph_reg=1e5, measure="auc").fit(X, judged),
}
for name, model in models.items():
    print(f"{name}: MAP of all rows {model.score(X, y):.3f}")

# %%
# How far every place is from one labelled row, which is circled. Where the shade is alike, rows
# are near each other.
axis = np.linspace(-9, 9, 120)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
query = X[known[:1]]
figure, panels = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for panel, (name, model) in zip(panels, models.items(), strict=True):
    distances = model.metric_.distances(query, grid).reshape(120, 120)
    panel.contourf(axis, axis, distances, levels=12, cmap="Greys_r")
    panel.scatter(*X.T, c=y, cmap="coolwarm", s=8)
    panel.scatter(*X[known].T, c=y[known], cmap="coolwarm", s=90, edgecolor="white")
    panel.scatter(*query.T, s=300, facecolor="none", edgecolor="gold", linewidth=2)
    panel.set_title(name)
plt.show()
