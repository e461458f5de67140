"""
How small can the index be?
===========================

Principal components of the mapped corpus, from all dimensions downwards: what does each width lose
on held-out queries, and how much memory does it save?
"""

# %%
# The bundled sample of SciFact has 384 dimensions. A loss of 0.01 NDCG@10 is taken not to matter.
import matplotlib.pyplot as plt

from rankspace import tune
from rankspace.datasets import load_scifact_sample

claims = load_scifact_sample().part("train").part(range(400))
tuned = tune(
    claims.X,
    claims.relevance,
    queries=claims.queries,
    similarity="cosine",
    n_components="smallest",
    size_tolerance=0.01,
    random_state=0,
)
print(tuned.report.sentence)
print(tuned.metric)

# %%
# Score against megabytes for a million documents. Full points are shown to be safe.
figure, axes = plt.subplots(figsize=(6, 3))
for row in tuned.report.sizes:
    safe = row.outcome in ("full width", "safe")
    face = "C0" if safe else "white"
    axes.plot(row.megabytes, row.everything, "o", color="C0", markerfacecolor=face)
    name = f"{row.n_components}"
    if row.storage != "float32":
        name += f" {row.storage}"
    axes.annotate(name, (row.megabytes, row.everything), fontsize=7, rotation=30)
axes.set_xscale("log")
axes.set_xlabel("megabytes a million documents")
axes.set_ylabel("held-out NDCG@10")
figure.tight_layout()
plt.show()
