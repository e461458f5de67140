"""By what factor must the spreads of features differ before standardising them pays?

MAP of held-out queries in 3-fold cross-validation on training data, 1,000 rows at most, with the
raw features and those standardised by the training fold. "Ratio" is the largest standard
deviation over the median one, by which ``scaling="auto"`` decides. "Without its largest" leaves out
the features of largest spread, for ratios in between. MLR is left out above 200 features, where a
fit takes minutes. Arguments: names of sets.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from _sets import ROWS, SAMPLE
from _table import publish
from sklearn.base import clone
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from rankspace import FRML, GMML, MLR, ListwiseMap, Relevance, datasets
from rankspace.learners.solvers.scaling import spread_ratio
from rankspace.relevance.splits import fold_queries, only_trainable

FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
LEARNERS = {
    "MLR": MLR(scaling=None),
    "FRML": FRML(scaling=None, random_state=0),
    "GMML": GMML(scaling=None),
    "ListwiseMap": ListwiseMap(scaling=None, random_state=0),
}
MOST_FOR_MLR = 200
# Sets by the rows that they come from, and how these are prepared.
TABLES = {
    "raw wine": ("wine", 0, None),
    "raw wine without its largest": ("wine", 1, None),
    "raw WDBC": ("WDBC", 0, None),
    "raw WDBC without its 4 largest": ("WDBC", 4, None),
    "raw WDBC without its 6 largest": ("WDBC", 6, None),
    "raw WDBC without its 9 largest": ("WDBC", 9, None),
    "raw covertype": ("covertype", 0, None),
    "raw iris": ("iris", 0, None),
    "raw ionosphere": ("ionosphere", 0, None),
    "digits, pixels": ("digits", 0, None),
    "USPS, pixels": ("USPS", 0, None),
    "MNIST, pixels": ("MNIST", 0, None),
    "MNIST, PCA 100": ("MNIST", 0, PCA(100, random_state=0)),
    "UMIST, PCA 60": ("UMIST", 0, PCA(60, random_state=0)),
    "UMIST, PCA 170": ("UMIST", 0, PCA(170, random_state=0)),
    "UMIST, all of PCA": ("UMIST", 0, PCA(random_state=0)),
    "IsoLet, PCA 100": ("IsoLet", 0, PCA(100, random_state=0)),
    "IsoLet, PCA 170": ("IsoLet", 0, PCA(170, random_state=0)),
    "News, LSA 50": ("News", 0, TruncatedSVD(50, random_state=0)),
}
EMBEDDINGS = {
    "Cranfield, MiniLM": datasets.fetch_cranfield,
    "SciFact training queries, MiniLM": datasets.fetch_scifact,
}
SETS = (*TABLES, *EMBEDDINGS)

# Training items, judgments and queries; held-out points and their judgments.
Fold = tuple[Any, Relevance, Any, Any, Relevance]


def table_folds(name: str) -> Iterator[Fold]:
    """Folds of labelled rows."""
    base, n_dropped, steps = TABLES[name]
    X, y = labelled_rows(base)
    if n_dropped:
        X = np.delete(X, np.argsort(-X.std(axis=0))[:n_dropped], axis=1)
    steps = steps or FunctionTransformer()
    for train, test in FOLDS.split(X, y):
        items = np.asarray(clone(steps).fit(X[train]).transform(X[train]), dtype=float)
        points = clone(steps).fit(X[train]).transform(X[test])
        judged = Relevance.from_labels(y[train], query_labels=y[test])
        yield items, Relevance.from_labels(y[train]), None, points, judged


def labelled_rows(base: str) -> tuple[Any, np.ndarray]:
    """At most 1,000 random rows, of the training part if there is one."""
    others = {"MNIST": datasets.fetch_mnist, "covertype": datasets.fetch_covertype}
    if base in others:
        dataset = others[base]()
        if "train" in dataset.splits:
            dataset = dataset.part("train")
        X, y = dataset.X, dataset.labels
    else:
        X, y = ROWS[base]()
    rows = np.random.default_rng(0).permutation(len(y))[:SAMPLE]
    X = X[rows]
    return (X if hasattr(X, "tocsr") else np.asarray(X, dtype=float)), y[rows]


def embedding_folds(name: str) -> Iterator[Fold]:
    """Folds of queries with vectors."""
    dataset = EMBEDDINGS[name]()
    if "train" in dataset.splits:
        dataset = dataset.part("train")
    folds = fold_queries(dataset.relevance.n_queries, 3, 0)
    for fold in range(3):
        split = folds.split(dataset.X, dataset.relevance, dataset.queries, fold)
        yield only_trainable(split)[:5]


def scores(learner: Any, fold: Fold) -> tuple[float, float]:
    """MAP of held-out queries with raw and with standardised features."""
    X, taught, queries, points, judged = fold
    found = []
    for scaler in (FunctionTransformer(), StandardScaler()):
        items = scaler.fit_transform(X)
        own = None if queries is None else scaler.transform(queries)
        model = clone(learner).fit(items, taught, queries=own)
        found.append(model.score(items, judged, queries=scaler.transform(points)))
    return found[0], found[1]


def row_of(name: str) -> list[Any]:
    """One line of the table."""
    folds = list((table_folds if name in TABLES else embedding_folds)(name))
    row: list[Any] = [
        name,
        round(float(np.mean([spread_ratio(f[0]) for f in folds])), 1),
    ]
    for label, learner in LEARNERS.items():
        if label == "MLR" and folds[0][0].shape[1] > MOST_FOR_MLR:
            row += ["", ""]
            continue
        means = np.mean([scores(learner, fold) for fold in folds], axis=0)
        row += [round(float(mean), 3) for mean in means]
    return row


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    header = ["data", "ratio"]
    for label in LEARNERS:
        header += [f"{label}, as it is", f"{label}, standardised"]
    rows = []
    for name in [name for name in sys.argv[1:] if name in SETS] or SETS:
        rows.append(row_of(name))
        print(rows[-1], flush=True)
    publish("Raw and standardised features: held-out MAP", header, rows)


if __name__ == "__main__":
    main()
