"""
Learning for the vote of the nearest neighbours
===============================================

k-NN classification lets the first k items vote. MLR can optimise just that: ``knn@k`` asks for more
than half of the votes, ``knn-vote@k`` for more than any other class has. MAP asks for more: all
items of the class first. Which of them classifies best?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

from rankspace import MLR, Euclidean, knn_error

X, y = load_iris(return_X_y=True)
k = 5
names = ["Euclidean", f"knn@{k}", f"knn-vote@{k}", "map"]

# %%
# Errors of new flowers over ten splits. The differences are smaller than those between splits: on
# sets like this one the vote has no advantage, and MAP is the safer choice.
errors = []
for seed in range(10):
    parts = train_test_split(X, y, test_size=0.4, stratify=y, random_state=seed)
    X_train, X_test, y_train, y_test = parts
    models = [Euclidean(), *(MLR(1000.0, measure=name, tol=0.05) for name in names[1:])]
    rankings = [m.fit(X_train, y_train).rank(X_test, X_train, k) for m in models]
    errors.append([knn_error(r, y_train, k, query_labels=y_test) for r in rankings])
errors = 100 * np.array(errors)
for name, column in zip(names, errors.T, strict=True):
    print(f"{name}: {column.mean():.1f} % wrong")

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.plot(errors.T, color="lightgrey")
ax.plot(errors.mean(axis=0), "o-", color="black", label="mean")
ax.set_xticks(range(len(names)), names)
ax.set_ylabel(f"error of {k}-NN on new rows, %")
ax.legend()
plt.show()
