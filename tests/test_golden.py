"""Numbers that no change of layout or names may move. Write them anew: python tests/test_golden.py.

One thread, so that sums have one order. The numbers hold for one set of packages and one machine,
so this test goes when the move is over.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from rankspace import (
    FRML,
    GMML,
    ITML,
    LGMML,
    LMNN,
    LORETA,
    MLR,
    PARCA,
    Index,
    ListwiseMap,
    LogisticPARCA,
    RobustMLR,
    evaluate,
    tune,
    use_backend,
)
from rankspace.datasets import load_scifact_sample
from rankspace.export import to_npy

GOLDEN = Path(__file__).parent / "golden" / "golden.npz"


def linear_learners():
    iris, species = load_iris(return_X_y=True)
    digits, classes = load_digits(return_X_y=True)
    digits = (
        digits[:300] + np.arange(64) % 3
    )  # no feature is constant by rounding alone
    wine, cultivar = load_wine(return_X_y=True)
    return {
        "mlr": MLR(C=100.0, measure="ndcg").fit(scale(wine), cultivar),
        "frml": FRML(5, n_triplets=20_000, random_state=0).fit(digits, classes[:300]),
        "parca": PARCA(2, random_state=0).fit(scale(iris), species),
        "gmml": GMML().fit(scale(wine), cultivar),
        "listwise": ListwiseMap().fit(scale(wine), cultivar),
        "robust mlr": RobustMLR(C=100.0).fit(scale(iris), species),
        "logistic parca": LogisticPARCA(random_state=0).fit(scale(iris), species),
        "lmnn": LMNN().fit(scale(iris), species),
        "itml": ITML(random_state=0).fit(scale(iris), species),
        "loreta": LORETA(2, random_state=0).fit(scale(iris), species),
    }


def candidate_lists():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    grades = np.digitize(
        X @ [2.0, 1.0, 0.5, 0.0, 0.0, 0.0] + rng.normal(size=400), [0.5, 2.0]
    )
    return X, grades, np.repeat(np.arange(20), 20)


def sample():
    """Every third abstract and the claims that 150 of the training queries ask for."""
    data = load_scifact_sample()
    queries = data.splits["train"][:150]
    return data.X, data.relevance.take_queries(queries), data.queries[queries]


def arrays(folder):
    found = {}
    for name, model in linear_learners().items():
        metric = model.metric_
        found[name] = metric.embed_items(np.eye(metric.n_features))
    X, grades, qid = candidate_lists()
    ranker = LGMML(random_state=0).fit(X, grades, qid=qid)
    found["lgmml"] = ranker.predict(X)
    X, relevance, queries = sample()
    tuned = tune(X, relevance, queries=queries, random_state=0)
    found["tune metric"] = tuned.metric.embed_queries(queries[:20])
    found["tune before"] = tuned.report.before.values[tuned.report.measure]
    found["tune after"] = tuned.report.after.values[tuned.report.measure]
    ranking = Index(X).rank(queries, k=30)
    found["rank items"] = ranking.items
    found["rank distances"] = ranking.distances
    report = evaluate(ranking, relevance, "ndcg@10 ndcg-linear@10 map mrr p@3 r@10")
    found.update((f"evaluate {name}", values) for name, values in report.values.items())
    to_npy(tuned.metric, X[:50], folder / "mapped.npy")
    found["export"] = np.load(folder / "mapped.npy")
    return found


def compute(folder):
    with threadpool_limits(1), use_backend("serial"):
        return arrays(folder)


@pytest.mark.skipif(
    os.environ.get("RANKSPACE_GOLDEN") == "skip", reason="another set of packages"
)
def test_golden_numbers(tmp_path):
    found = compute(tmp_path)
    with np.load(GOLDEN) as expected:
        assert sorted(expected.files) == sorted(found)
        for name in expected.files:
            np.testing.assert_allclose(
                found[name], expected[name], rtol=1e-12, atol=1e-12, err_msg=name
            )


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        np.savez_compressed(GOLDEN, **compute(Path(folder)))
