"""
Kernel metrics: two moons
=========================

No linear metric brings the rows of one moon together: many of the nearest neighbours of its tips
are on the other. MLR in the feature space of an RBF kernel does, also for points that it has never
seen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from rankspace import MLR, KernelMLR, scorer

X, y = make_moons(150, noise=0.1, random_state=0)
X_new, y_new = make_moons(300, noise=0.1, random_state=1)
models = {
    "MLR": MLR(measure="auc").fit(X, y),
    "KernelMLR": KernelMLR(kernel="rbf", gamma=2.0, measure="auc").fit(X, y),
}
for name, model in models.items():
    print(f"{name}: MAP of new points {scorer('map')(model, X_new, y_new):.3f}")

# %%
# How far every place is from one point of the upper moon: under the kernel metric, the other moon
# is far everywhere.
axis = np.linspace(-1.5, 2.5, 120), np.linspace(-1.0, 1.5, 80)
grid = np.stack(np.meshgrid(*axis), axis=-1).reshape(-1, 2)
query = X[[np.argmin(np.hypot(*(X - [-1.0, 0.0]).T))]]
figure, panels = plt.subplots(1, 2, figsize=(10, 3.5), sharey=True)
for panel, (name, model) in zip(panels, models.items(), strict=True):
    distances = model.metric_.distances(query, grid).reshape(80, 120)
    panel.contourf(*axis, distances, levels=12, cmap="Blues_r")
    panel.scatter(*X.T, c=y, cmap="coolwarm", s=12)
    panel.scatter(*query.T, marker="*", color="black", s=150)
    panel.set_title(name)
figure.tight_layout()
plt.show()
