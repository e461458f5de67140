"""
Words and vectors together
==========================

A search by words and a search by vectors miss different documents. Their rankings can be fused, by
weights or by reciprocal ranks.
"""

# %%
# BM25 ranks the texts of the bundled collection, the cosine their embeddings.
import matplotlib.pyplot as plt

from rankspace import Index, Ranking, evaluate, rank_bm25
from rankspace.datasets import load_scifact_sample

test = load_scifact_sample().part("test")
words = rank_bm25(test.texts, test.query_texts, k=100)
vectors = Index(test.X, similarity="cosine").rank(test.queries, k=100)
rankings = {
    "words (BM25)": words,
    "vectors (cosine)": vectors,
    "reciprocal ranks": Ranking.fuse({"words": words, "vectors": vectors}),
}
for weight in (0.3, 0.5, 0.7):
    rankings[f"{weight} vectors + {1 - weight:.1f} words"] = Ranking.fuse(
        {"words": words, "vectors": vectors},
        weights={"words": 1 - weight, "vectors": weight},
    )
reports = {name: evaluate(r, test.relevance) for name, r in rankings.items()}

# %%
# Means with 95 % intervals. Weights shown here are not chosen: `tune(runs=...)` does so on training
# queries, and tests the choice.
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for place, (name, report) in enumerate(reports.items()):
    mean = report.means["ndcg-linear@10"]
    low, high = report.intervals["ndcg-linear@10"]
    ax.errorbar(mean, place, xerr=[[mean - low], [high - mean]], fmt="o", capsize=4)
    print(f"{name}: {mean:.3f}")
ax.set_yticks(range(len(reports)), list(reports))
ax.invert_yaxis()
ax.set_xlabel("NDCG@10 of 300 claims")
plt.show()
