"""
Hybrid search: what is each signal worth?
=========================================

Vectors, a map learned from judgments, and BM25 each find other documents. ``tune`` learns how much
each counts, and says what it would cost to leave one out.
"""

# %%
# The bundled sample of SciFact: claims, abstracts and their sentence vectors. BM25 needs the extra
# ``bm25``; memory ranks documents that similar past claims asked for.
import matplotlib.pyplot as plt
import numpy as np

from rankspace import rank_bm25, tune
from rankspace.datasets import load_scifact_sample

claims = load_scifact_sample().part("train").part(range(400))
bm25 = rank_bm25(claims.texts, claims.query_texts)
tuned = tune(
    claims.X,
    claims.relevance,
    queries=claims.queries,
    runs={"bm25": bm25, "memory": "memory"},
    prefer="known",
    similarity="cosine",
    random_state=0,
)
print(tuned.report.sentence)
print(tuned.weights)

# %%
# What each signal would add to the map, on queries that took no part in learning or choosing.
# In this sample the answer is no for both, so no second index is needed. In the full collection,
# BM25 is used: see the recipe ``signals``.
rows = tuned.report.signals
gains = np.array([row.gain for row in rows])
below = gains - [row.gain_low for row in rows]
above = np.array([row.gain_high for row in rows]) - gains
figure, axes = plt.subplots(figsize=(6, 2))
axes.barh([row.signal for row in rows], gains, xerr=(below, above), color="0.7")
axes.invert_yaxis()
axes.axvline(0, color="black", linewidth=0.8)
axes.set_xlabel("gain in NDCG@10")
figure.tight_layout()
plt.show()
