"""
Which queries gain, and which lose?
===================================

A mean hides the queries that a metric harms. Reports keep every query, so the gains can be seen.
"""

# %%
# Tumours are ranked by Euclidean distance of scaled features, then by LDA, both learned on a part.
import matplotlib.pyplot as plt
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankspace import Index, LinearMetric, Relevance, compare, evaluate
from rankspace.datasets import load_wdbc
from rankspace.display import GainsDisplay

wdbc = load_wdbc()
X, Q, y, wanted = train_test_split(wdbc.X, wdbc.labels, test_size=0.4, random_state=0)
relevance = Relevance.from_labels(y, query_labels=wanted)
scaled = StandardScaler().fit(X)
learned = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis()).fit(X, y)
before, after = (
    evaluate(
        Index(X, LinearMetric.from_transformer(step)).rank(Q), relevance, "map p@10"
    )
    for step in (scaled, learned)
)
print(compare(before, after))

# %%
# The gain of each query, sorted: most rise a little, a few fall far.
GainsDisplay.from_reports(before, after)
plt.show()
