"""
Does it matter which measure MLR optimises?
===========================================

MLR optimises the measure that you name. Here each learned metric is judged by every measure, on
held-out queries.
"""

# %%
# Tumours, half of them queries. Rows are what was optimised, columns what is measured.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from rankspace import MLR, Index, Relevance, evaluate
from rankspace.datasets import load_wdbc

wdbc = load_wdbc()
X, Q, y, query_labels = train_test_split(
    wdbc.X, wdbc.labels, train_size=150, test_size=200, random_state=0
)
scaler = StandardScaler().fit(X)
X, Q = scaler.transform(X), scaler.transform(Q)
relevance = Relevance.from_labels(y, query_labels=query_labels)

optimised = ["auc", "map", "mrr", "p@10", "ndcg@10"]
measured = ["auc", "map", "mrr", "p@10", "ndcg@10"]
table = []
for measure in [None, *optimised]:
    metric = MLR(measure=measure).fit(X, y).metric_ if measure else None
    report = evaluate(Index(X, metric).rank(Q), relevance, measured)
    table.append([report.means[name] for name in measured])
table = np.array(table)

# %%
# On two classes that are nearly separable, all measures lead to about the same metric: choose the
# one that you report.
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.imshow(table - table[0], cmap="PuOr_r", vmin=-0.15, vmax=0.15, aspect="auto")
for (row, column), value in np.ndenumerate(table):
    ax.text(column, row, f"{value:.3f}", ha="center", va="center")
ax.set_xticks(range(len(measured)), measured)
ax.set_yticks(range(len(table)), ["no metric", *(f"MLR, {m}" for m in optimised)])
ax.set_title("held-out values; colour: gain over no metric")
plt.show()
