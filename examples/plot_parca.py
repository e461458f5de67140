"""
Two dimensions in which near means relevant
===========================================

PCA finds the plane of largest variance, LDA the plane that separates class means. PARCA finds the
plane in which relevant points are nearest. All are evaluated by how held-out points rank.
"""

# %%
# The models are trained on a fifth of the digits. The others are plotted; as queries they rank the
# training part.
import matplotlib.pyplot as plt
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split

from rankspace import PARCA, LinearMetric, Relevance, evaluate
from rankspace.datasets import load_digits
from rankspace.display import GainsDisplay, LearningCurveDisplay, SpaceDisplay

digits = load_digits()
X, Q, y, query_labels = train_test_split(
    digits.X, digits.labels, train_size=0.2, random_state=0
)
models = {
    "PCA": PCA(2).fit(X),
    "LDA": LinearDiscriminantAnalysis(
        solver="eigen", shrinkage=0.1, n_components=2
    ).fit(X, y),
    "PARCA": PARCA(random_state=0).fit(X, y),
}
SpaceDisplay.from_metrics(models, X, y, Q, query_labels)
plt.show()

# %%
# The gain of each held-out digit over PCA.
relevance = Relevance.from_labels(y, query_labels=query_labels)
pca = LinearMetric(models["PCA"].components_)
parca = models["PARCA"].metric_
before = evaluate(pca.rank(Q, X), relevance, "ranking-error")
after = evaluate(parca.rank(Q, X), relevance, "ranking-error")
GainsDisplay.from_reports(before, after)
plt.show()

# %%
# Learning curves: error against the share of training data, over three random splits.
ratios = [0.05, 0.1, 0.2]
errors = {"PCA": [], "PARCA": []}
for ratio in ratios:
    split_errors = {"PCA": [], "PARCA": []}
    for seed in range(3):
        X, Q, y, query_labels = train_test_split(
            digits.X, digits.labels, train_size=ratio, test_size=500, random_state=seed
        )
        relevance = Relevance.from_labels(y, query_labels=query_labels)
        metrics = {
            "PCA": LinearMetric(PCA(2).fit(X).components_),
            "PARCA": PARCA(reg=0.003, random_state=0).fit(X, y).metric_,
        }
        for name, metric in metrics.items():
            report = evaluate(metric.rank(Q, X), relevance, "ranking-error")
            split_errors[name].append(report.means["ranking-error"])
    for name, values in split_errors.items():
        errors[name].append(values)
LearningCurveDisplay(ratios, errors, title="digits").plot()
plt.show()
