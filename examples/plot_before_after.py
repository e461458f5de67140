"""
Does a linear map help retrieval?
=================================

This example compares Euclidean distance on digits with the metrics of scikit-learn's PCA, LDA and
NCA. The maps are trained on the corpus and evaluated on held-out queries.
"""

# %%
# Half of the images are the corpus, the other half are queries.
import matplotlib.pyplot as plt
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from rankspace import Index, LinearMetric, Relevance, evaluate
from rankspace.datasets import load_digits

digits = load_digits()
X, Q, y, query_labels = train_test_split(
    digits.X, digits.labels, test_size=0.5, random_state=0
)
relevance = Relevance.from_labels(y, query_labels=query_labels)

# %%
# Each learner becomes a metric, each metric an index, each index a ranking of the whole corpus.
learners = {
    "PCA": PCA(20),
    "LDA": LinearDiscriminantAnalysis(),
    "NCA": NeighborhoodComponentsAnalysis(max_iter=20, random_state=0),
}
metrics = {
    name: LinearMetric.from_transformer(step.fit(X, y))
    for name, step in learners.items()
}
metrics = {"Euclidean": LinearMetric.identity(X.shape[1])} | metrics
reports = {
    name: evaluate(Index(X, metric).rank(Q), relevance, "map p@10")
    for name, metric in metrics.items()
}
for name, report in reports.items():
    print(f"{name}\n{report}\n")

# %%
# MAP measures the whole list, P@10 its first ten items. LDA brings whole classes together but
# leaves the top of the lists unchanged.
figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for ax, measure in zip(axes, ("map", "p@10"), strict=True):
    means = [report.means[measure] for report in reports.values()]
    intervals = [report.intervals[measure] for report in reports.values()]
    errors = [
        [mean - low for mean, (low, _) in zip(means, intervals, strict=True)],
        [high - mean for mean, (_, high) in zip(means, intervals, strict=True)],
    ]
    ax.errorbar(list(reports), means, yerr=errors, fmt="o", capsize=4)
    ax.set_title(f"{measure}, 95 % intervals")
plt.show()
