"""
Is a learned metric worth it?
=============================

`tune` learns a map of the queries from relevance judgments, and says by held-out queries whether to
use it. The collection comes with the package: scientific claims, and abstracts that support or
refute them.
"""

# %%
# The report begins with the answer. Claims whose abstracts were judged before gain much; whether
# new abstracts gain cannot be told from so few claims.
import matplotlib.pyplot as plt

from rankspace import Index, compare, evaluate, tune
from rankspace.datasets import load_scifact_sample
from rankspace.display import GainsDisplay

sample = load_scifact_sample()
train, test = sample.part("train"), sample.part("test")
tuned = tune(train.X, train.relevance, queries=train.queries, n_folds=3, random_state=0)
print(tuned.report.sentence)

# %%
# The path of regularisation: from unchanged vectors to maps that are hardly held back. The chosen
# strength is the strongest within one standard error of the best.
rows = tuned.report.path
names = [row.strength.removesuffix(" / queries").removeprefix("reg ") for row in rows]
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for name, colour in {"known": "#0072b2", "new": "#d55e00"}.items():
    values = [getattr(row, name) for row in rows]
    ax.plot(names, values, "o-", color=colour, label=f"{name} documents")
chosen = next(row.strength for row in rows if row.chosen)
ax.axvline([row.strength for row in rows].index(chosen), color="0.7", zorder=0)
ax.set(xlabel="reg x queries, strong to weak", ylabel="held-out NDCG@10")
ax.legend(frameon=False)
plt.show()

# %%
# The same map on 300 claims that tuning never saw.
before = Index(test.X, similarity="cosine").rank(test.queries, 100)
after = Index(test.X, tuned.metric).rank(test.queries, 100)
reports = [evaluate(ranking, test.relevance) for ranking in (before, after)]
print(compare(*reports))
GainsDisplay.from_reports(*reports)
plt.show()
