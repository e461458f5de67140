"""Serving: a saved metric maps single queries at once, without the packages that learn it."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from rankspace import AsymmetricMetric, BilinearMetric, LinearMetric, load_metric

# What a service needs besides the standard library.
NEEDED = {"numpy", "safetensors", "rankspace"}
SERVE = """
import sys
installed = set(sys.modules)
import rankspace
metric = rankspace.load_metric(sys.argv[1])
import numpy as np
for query in [np.ones(3), np.ones((2, 3), "f4"), [1, 2, 3], np.ones(3, "f2")]:
    metric.embed_queries(query)
    metric.embed_items(query)
for query in [np.zeros(2), np.full(3, np.nan), np.full((1, 3), np.inf), [], [[]]]:
    try:
        metric.embed_queries(query)
    except ValueError:
        continue
    raise SystemExit(f"{query} was accepted")
loaded = {name.partition(".")[0] for name in set(sys.modules) - installed}
print(*sorted(loaded - set(sys.stdlib_module_names)))
"""

rng = np.random.default_rng(0)
LEFT, RIGHT = rng.standard_normal((2, 4, 3))
METRICS = {
    "linear": LinearMetric(LEFT),
    "linear cosine": LinearMetric(LEFT, similarity="cosine"),
    "bilinear": BilinearMetric(LEFT, RIGHT, similarity="cosine"),
    "asymmetric": AsymmetricMetric(LEFT, RIGHT, query_offset=[1.0, 2.0, 3.0, 4.0]),
}
each_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)


@each_metric
def test_only_numpy_and_safetensors_are_imported(metric, tmp_path):
    metric.save(tmp_path / "metric")
    command = [sys.executable, "-W", "error", "-c", SERVE, str(tmp_path / "metric")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.stderr == ""
    loaded = {name for name in found.stdout.split() if not name.startswith("_")}
    assert loaded <= NEEDED


@each_metric
@pytest.mark.parametrize(
    ("dtype", "scale"),
    [
        (np.float64, 1.0),
        (np.float64, 1e-300),
        (np.float64, 1e300),
        (np.float32, 1.0),
        (np.float16, 1.0),
        (np.int64, 1.0),
    ],
)
def test_one_vector_is_mapped_as_a_row_is(metric, dtype, scale):
    rows = (5 * rng.standard_normal((20, 3)) * scale).astype(dtype)
    rows = rows[rows.any(axis=1)]
    for embed in (metric.embed_queries, metric.embed_items):
        expected = embed(rows)
        for row, wanted in zip(rows, expected, strict=True):
            for query in (row, row.tolist()):
                found = embed(query)
                assert found.shape == (4,)
                tolerance = 1e-13 if expected.dtype == np.float64 else 1e-5
                np.testing.assert_allclose(
                    found, wanted, rtol=0, atol=tolerance * np.abs(wanted).max()
                )
            assert embed(row).dtype == expected.dtype


def test_threads_get_the_same_vectors(tmp_path):
    """Also those that are first to need the map in another precision."""
    metric = METRICS["asymmetric"]
    queries = rng.standard_normal((200, 3)).astype(np.float32)
    expected = [metric.embed_queries(query) for query in queries]
    metric.save(tmp_path / "metric")
    for _ in range(5):
        fresh = load_metric(tmp_path / "metric")
        with ThreadPoolExecutor(16) as pool:
            found = list(pool.map(fresh.embed_queries, queries))
        np.testing.assert_array_equal(found, expected)


def test_a_used_metric_is_pickled_as_a_fresh_one_is():
    metric = LinearMetric(LEFT)
    fresh = pickle.dumps(metric)
    metric.embed_queries(np.ones(3, np.float32))
    assert pickle.dumps(metric) == fresh
    loaded = pickle.loads(fresh)
    np.testing.assert_array_equal(loaded.embed_queries(np.ones(3)), LEFT.sum(axis=1))
