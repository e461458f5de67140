"""
A learner of your own in ten lines
==================================

A learner implements one method, which returns a metric. It gets the checks, ``rank``, ``score``,
``transform``, pipelines and grid search of all others.
"""

# %%
# Whitening within classes: directions in which a class varies much say little about relevance.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankspace import Euclidean, LinearMetric, LinearRanker
from rankspace.datasets import load_wine


class WithinClassWhitening(LinearRanker):
    """Whitening by the scatter of relevant items around their mean."""

    def __init__(self, shrinkage=0.1):
        self.shrinkage = shrinkage

    def _fit_metric(self, X, relevance, queries):
        lists = [relevance.relevant(q) for q in range(relevance.n_queries)]
        scatter = np.mean([np.cov(X[rows].T) for rows in lists], axis=0)
        scatter += (
            self.shrinkage * np.trace(scatter) / len(scatter) * np.eye(len(scatter))
        )
        return LinearMetric(np.linalg.cholesky(np.linalg.inv(scatter)).T)


# %%
# It goes into a pipeline and a grid search as any estimator.
wine = load_wine()
folds = KFold(5, shuffle=True, random_state=0)
values = np.logspace(-4, 1, 6)
search = GridSearchCV(
    make_pipeline(StandardScaler(), WithinClassWhitening()),
    {"withinclasswhitening__shrinkage": values},
    cv=folds,
).fit(wine.X, wine.labels)
plain = GridSearchCV(make_pipeline(StandardScaler(), Euclidean()), {}, cv=folds)
plain.fit(wine.X, wine.labels)
print(search.best_params_, round(search.best_score_, 3))

# %%
# Held-out MAP by shrinkage.
figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
scores = search.cv_results_["mean_test_score"]
ax.semilogx(values, scores, "o-", label="whitening within classes")
ax.axhline(plain.best_score_, color="0.5", linestyle=":", label="Euclidean")
ax.set(xlabel="shrinkage", ylabel="held-out MAP")
ax.legend(frameon=False)
plt.show()
