"""
Which queries gain, and which lose?
===================================

A mean hides the queries that a metric harms. Reports have a value for every query, so the gains
and losses can be plotted.
"""

# %%
# Tumours are ranked by Euclidean distance on scaled features, then by LDA. Both are fitted on the
# training part.
import matplotlib.pyplot as plt
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankspace import Index, LinearMetric, Relevance, compare, evaluate
from rankspace.datasets import load_wdbc
from rankspace.display import GainsDisplay

wdbc = load_wdbc()
X, Q, y, query_labels = train_test_split(
    wdbc.X, wdbc.labels, test_size=0.4, random_state=0
)
relevance = Relevance.from_labels(y, query_labels=query_labels)
scaled = StandardScaler().fit(X)
learned = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis()).fit(X, y)
reports = []
for transformer in (scaled, learned):
    metric = LinearMetric.from_transformer(transformer)
    reports.append(evaluate(Index(X, metric).rank(Q), relevance, "map p@10"))
before, after = reports
print(compare(before, after))

# %%
# The sorted gains: most queries gain a little, a few lose a lot.
GainsDisplay.from_reports(before, after)
plt.show()
