"""
Learning to rank from a file of candidate lists
===============================================

LGMML learns from graded candidate lists, such as those of a search engine: each row is a document
of one query, with features and a grade.
"""

# %%
# A small file in the LETOR format. The grade depends on three of eight features, one of them with
# a sweet spot in the middle, which no linear score can find.
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

from rankspace import LGMML, Ranking, compare, evaluate
from rankspace.datasets import read_letor
from rankspace.display import GainsDisplay

rng = np.random.default_rng(0)
lines = []
for query in range(120):
    for row in rng.random((15, 8)):
        quality = row[0] + row[1] - 2 * abs(row[2] - 0.5) + 0.2 * rng.normal()
        grade = int(np.digitize(quality, [0.5, 1.0]))
        features = " ".join(f"{i}:{value:.3f}" for i, value in enumerate(row, 1))
        lines.append(f"{grade} qid:{query} {features}")
with TemporaryDirectory() as folder:
    path = Path(folder) / "lists.txt"
    path.write_text("\n".join(lines) + "\n")
    letor = read_letor(path)
print(lines[0])
print(letor)

# %%
# Learn from 80 queries, and rank the candidates of the other 40.
queries = np.unique(letor.qid)
train = np.isin(letor.qid, queries[:80])
test = ~train
model = LGMML(random_state=0).fit(
    letor.X[train], letor.grades[train], qid=letor.qid[train]
)
part = letor.part(test)
before = Ranking.from_groups(-letor.X[test].sum(axis=1), part.qid)
after = Ranking.from_groups(-model.predict(letor.X[test]), part.qid)
reports = [evaluate(r, part.relevance, "ndcg@10") for r in (before, after)]
print(compare(*reports))

# %%
# Gains over the plain sum of all features, query by query.
GainsDisplay.from_reports(*reports)
plt.show()
