"""
Which queries gain, and which lose?
===================================

A mean hides the queries that a metric harms. Reports keep every query, so the gains can be seen.
"""

# %%
# Tumours are ranked by Euclidean distance of scaled features, then by LDA, both learned on a part.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankspace import Index, LinearMetric, Relevance, compare, evaluate
from rankspace.datasets import load_wdbc

wdbc = load_wdbc()
X, Q, y, wanted = train_test_split(wdbc.X, wdbc.labels, test_size=0.4, random_state=0)
relevance = Relevance.from_labels(y, query_labels=wanted)
scaled = StandardScaler().fit(X)
learned = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis()).fit(X, y)
before, after = (
    evaluate(Index(X, LinearMetric.from_transformer(step)).rank(Q), relevance, "map p@10")
    for step in (scaled, learned)
)
print(compare(before, after))

# %%
# The gain of each query, sorted: most rise a little, a few fall far.
gains = np.sort(after.values["map"] - before.values["map"])[::-1]
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.bar(np.arange(gains.size), gains, width=1.0, color=np.where(gains < 0, "tab:orange", "tab:blue"))
ax.set_xlabel("queries, largest gain first")
ax.set_ylabel("gain in MAP")
plt.show()
