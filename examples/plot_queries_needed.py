"""
How many queries show a difference?
===================================

With few queries, a real gain is lost in chance. The interval of a difference shrinks with the root
of their number.
"""

# %%
# The same two rankings, judged on more and more of the held-out queries.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from rankspace import GMML, Index, Relevance, compare, evaluate
from rankspace.datasets import load_digits

digits = load_digits()
X, Q, y, query_labels = train_test_split(
    digits.X, digits.labels, train_size=400, random_state=0
)
relevance = Relevance.from_labels(y, query_labels=query_labels)
metric = GMML().fit(X, y).metric_
before = evaluate(Index(X).rank(Q), relevance, "p@10")
after = evaluate(Index(X, metric).rank(Q), relevance, "p@10")

sizes = [10, 20, 50, 100, 200, 500, 1000]
order = np.random.default_rng(0).permutation(len(Q))
comparisons = [compare(before.take(order[:n]), after.take(order[:n])) for n in sizes]
print(comparisons[-1])

# %%
# The 95 % intervals. As long as one crosses zero, the sign of the difference is not known.
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
differences = np.array([c.difference["p@10"] for c in comparisons])
limits = np.array([c.interval["p@10"] for c in comparisons])
errors = np.abs(limits.T - differences)
ax.errorbar(sizes, differences, yerr=errors, fmt="o", capsize=4)
ax.axhline(0, color="0.5", linewidth=0.8)
ax.set(xscale="log", xlabel="queries", ylabel="difference in P@10")
ax.set_xticks(sizes, sizes)
plt.show()
