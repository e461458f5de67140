"""
A learned metric in FAISS and PostgreSQL
========================================

A metric is a small matrix. This example puts it where the vectors are, and checks that the answers
are the same.
"""

# %%
# Learn a metric of ten dimensions, and search with the library itself.
from pathlib import Path
from tempfile import TemporaryDirectory

import faiss
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from rankspace import FRML, Index
from rankspace.datasets import load_digits
from rankspace.export import to_faiss, to_sql

digits = load_digits()
X, Q, y, _ = train_test_split(
    digits.X.astype(np.float32), digits.labels, test_size=200, random_state=0
)
metric = FRML(10, n_triplets=30_000, random_state=0).fit(X, y).metric_
wanted = Index(X, metric).rank(Q, 10).items.reshape(200, 10)

# %%
# FAISS: the file holds the map and the mapped vectors. It takes unmapped queries, and programs that
# read it do not need rankspace.
folder = TemporaryDirectory()
path = Path(folder.name) / "digits.faiss"
to_faiss(metric, X, path)
_, found = faiss.read_index(str(path)).search(Q, 10)
print("the same items:", (found == wanted).mean())

# %%
# PostgreSQL with pgvector: a script for ``psql -f``, and the statement that searches. Without a
# database at hand, only its first lines are shown.
script = Path(folder.name) / "digits.sql"
print(to_sql(metric, X[:100], script, table="digits"))
print("\n".join(line[:70] for line in script.read_text().splitlines()[:6]))

# %%
# The nearest images of two digits, before and after.
before = Index(X).rank(Q[:2], 5)
after = Index(X, metric).rank(Q[:2], 5)
figure, axes = plt.subplots(2, 11, figsize=(9, 2.2), layout="constrained")
for row, (query, old, new) in enumerate(zip(Q[:2], before, after, strict=True)):
    pictures = [query, *X[old[0]], *X[new[0]]]
    for ax, picture in zip(axes[row], pictures, strict=True):
        ax.imshow(picture.reshape(8, 8), cmap="gray_r")
        ax.set_axis_off()
for column, title in ((0, "query"), (3, "nearest before"), (8, "nearest after")):
    axes[0, column].set_title(title, fontsize=9)
plt.show()
folder.cleanup()
