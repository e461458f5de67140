"""
Two dimensions in which near means relevant
===========================================

PCA shows where points spread, LDA where class means do. PARCA shows the plane in which a point has
its relevant points nearest; what counts is how points rank that it was not learned on.
"""

# %%
# A fifth of the digits is learned from; the others are drawn, and rank the former.
import matplotlib.pyplot as plt
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split

from rankspace import PARCA, LinearMetric, Relevance, evaluate
from rankspace.datasets import load_digits
from rankspace.display import GainsDisplay, LearningCurveDisplay, SpaceDisplay

digits = load_digits()
X, Q, y, wanted = train_test_split(
    digits.X, digits.labels, train_size=0.2, random_state=0
)
models = {
    "PCA": PCA(2).fit(X),
    "LDA": LinearDiscriminantAnalysis(
        solver="eigen", shrinkage=0.1, n_components=2
    ).fit(X, y),
    "PARCA": PARCA(random_state=0).fit(X, y),
}
SpaceDisplay.from_metrics(models, X, y, Q, wanted)
plt.show()

# %%
# What each held-out digit gains over PCA.
relevance = Relevance.from_labels(y, query_labels=wanted)
metrics = (LinearMetric(models["PCA"].components_), models["PARCA"].metric_)
reports = [
    evaluate(metric.rank(Q, X), relevance, "ranking-error") for metric in metrics
]
GainsDisplay.from_reports(*reports)
plt.show()

# %%
# Errors against the share that was learned from, over three random splits.
ratios, errors = [0.05, 0.1, 0.2], {"PCA": [], "PARCA": []}
for ratio in ratios:
    rows = {name: [] for name in errors}
    for seed in range(3):
        X, Q, y, wanted = train_test_split(
            digits.X, digits.labels, train_size=ratio, test_size=500, random_state=seed
        )
        relevance = Relevance.from_labels(y, query_labels=wanted)
        learned = PARCA(reg=0.003, random_state=0).fit(X, y).metric_
        for name, metric in (
            ("PCA", LinearMetric(PCA(2).fit(X).components_)),
            ("PARCA", learned),
        ):
            report = evaluate(metric.rank(Q, X), relevance, "ranking-error")
            rows[name].append(report.means["ranking-error"])
    for name, values in rows.items():
        errors[name].append(values)
LearningCurveDisplay(ratios, errors, title="digits").plot()
plt.show()
