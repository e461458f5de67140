"""
Which features are noise?
=========================

RobustMLR removes whole features. Thirteen features of wines stand among 40 of pure noise.
"""

# %%
# A larger ``sparsity`` removes more features. The metric of MLR uses all of them.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import scale

from rankspace import MLR, RobustMLR
from rankspace.datasets import load_wine

wine = load_wine()
rng = np.random.default_rng(0)
noise = rng.normal(size=(len(wine.X), 40))
X, y = np.c_[scale(wine.X), noise], wine.labels
train = rng.permutation(len(X))[:90]
models = {
    "MLR": MLR(measure="auc", C=100).fit(X[train], y[train]),
    "RobustMLR": RobustMLR(measure="auc", C=100, sparsity=5.0).fit(X[train], y[train]),
}
support = models["RobustMLR"].support_
print(
    "features kept:", (support < 13).sum(), "of 13,", (support >= 13).sum(), "of noise"
)

# %%
# The weight of each feature in the distance: real ones first, then noise.
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    weights = np.diag(model.get_mahalanobis_matrix())
    colours = ["#0072b2"] * 13 + ["#d55e00"] * 40
    ax.bar(range(len(weights)), weights / weights.max(), color=colours)
    held_out = np.delete(np.arange(len(X)), train)
    value = model.score(X[held_out], y[held_out])
    ax.set(title=f"{name}: MAP {value:.3f} on other wines", xlabel="feature")
axes[0].set_ylabel("weight, relative to the largest")
plt.show()
