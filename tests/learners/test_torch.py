"""Losses for PyTorch: against enumeration, the kernels of the estimators, finite differences."""

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rankspace import AsymmetricMetric, LinearMetric, Relevance  # noqa: E402
from rankspace.learners.solvers.smooth.pair_loss import Listwise, PairLoss  # noqa: E402
from rankspace.learners.torch import (  # noqa: E402
    ListwiseLoss,
    MappedVectors,
    MLRLoss,
    WARPLoss,
    squared,
)
from reference import mlr as reference  # noqa: E402
from reference.frml import alphas  # noqa: E402

MEASURES = ["auc", "p@2", "knn@3", "map", "mrr", "ndcg", "ndcg@3", "ndcg-mlr@3"]


def points(rng, n=8, d=3):
    y = np.arange(n) % 3
    return torch.tensor(rng.normal(size=(n, d)), requires_grad=True), y


def slopes(loss, Z, step=1e-6):
    """Gradient by central differences."""
    gradient = np.zeros(Z.shape)
    for at in itertools.product(*map(range, Z.shape)):
        ends = []
        for sign in (1, -1):
            moved = Z.detach().clone()
            moved[at] += sign * step
            ends.append(float(loss(moved).detach()))
        gradient[at] = (ends[0] - ends[1]) / (2 * step)
    return gradient


@pytest.mark.parametrize("measure", MEASURES)
def test_mlr_loss_is_the_largest_violation_of_all_rankings(measure, rng):
    Z, y = points(rng)
    loss = MLRLoss(measure)(Z, y)
    relevance = Relevance.from_labels(y)
    queries = reference.queries_of(Z.detach().numpy(), relevance, measure)
    expected = np.mean([query.most_violated(np.eye(3))[0] for query in queries])
    assert float(loss.detach()) == pytest.approx(expected, abs=1e-12)
    loss.backward()
    expected = slopes(lambda moved: MLRLoss(measure)(moved, y), Z)
    np.testing.assert_allclose(Z.grad.numpy(), expected, atol=1e-6)


def graded():
    return Relevance.from_lists(
        [{1: 2.0, 2: 1.0}, {0: 1.0}, {4: 3.0, 5: 1.0}],
        [[3], [5], [0]],
        n_items=8,
        unjudged="ignore",
        weights=[1.0, 2.0, 0.5],
    )


def test_listwise_loss_is_that_of_the_estimator(rng):
    Z, _ = points(rng)
    Q = torch.tensor(rng.normal(size=(3, 3)), requires_grad=True)
    relevance = graded()
    loss = ListwiseLoss(0.7)(Z, relevance, queries=Q)
    twin = PairLoss(Z.detach().numpy(), Q.detach().numpy(), relevance, max_memory=64)
    rows = Listwise(relevance, [0.7])
    expected, _ = twin.value_and_gradient(np.eye(3), rows)
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-10)
    loss.backward()
    for tensor, other in ((Z, 0), (Q, 1)):
        tensors = [Z.detach(), Q.detach()]

        def value(moved, other=other, tensors=tensors):
            pair = [*tensors[:other], moved, *tensors[other + 1 :]]
            return ListwiseLoss(0.7)(pair[0], relevance, queries=pair[1])

        np.testing.assert_allclose(
            tensor.grad.numpy(), slopes(value, tensor), atol=1e-6
        )


def test_warp_loss_has_the_expectation_of_its_draws(rng):
    """Over all positives and all runs of draws, enumerated: the first violator ends a run."""
    Z, y = points(rng, n=6)
    loss = WARPLoss(n_triplets=4000, seed=0)(0.5 * Z, y)
    D = squared(0.5 * Z, 0.5 * Z).detach().numpy()
    expected = 0.0
    for q in range(6):
        positives = np.flatnonzero((y == y[q]) & (np.arange(6) != q))
        negatives = np.flatnonzero(y != y[q])
        n = negatives.size
        alpha = alphas("reciprocal", n)
        for positive in positives:
            hinges = np.maximum(0, 1 + D[q, positive] - D[q, negatives])
            misses = np.mean(hinges == 0)
            for draw in range(1, n + 1):
                weight = alpha[: n // draw].sum() / alpha.sum()
                reach = misses ** (draw - 1)
                expected += weight * reach * hinges.mean() / positives.size / 6
    assert float(loss.detach()) == pytest.approx(expected, rel=0.03)


def test_warp_gradient_holds_draws_and_weights_fixed(rng):
    Z, y = points(rng)
    WARPLoss(seed=3)(Z, y).backward()
    expected = slopes(lambda moved: WARPLoss(seed=3)(moved, y), Z)
    np.testing.assert_allclose(Z.grad.numpy(), expected, atol=1e-6)
    far = 100 * torch.eye(3, dtype=torch.float64)[torch.as_tensor(y)]
    assert float(WARPLoss()(far, y)) == 0


def test_maps_of_metrics(rng):
    X = rng.normal(size=(5, 3))
    metric = LinearMetric(rng.normal(size=(2, 3)), similarity="cosine")
    module = MappedVectors(metric)
    np.testing.assert_allclose(
        module(torch.tensor(X)).detach().numpy(), metric.embed_items(X), atol=1e-12
    )
    both = AsymmetricMetric(
        rng.normal(size=(2, 4)), rng.normal(size=(2, 3)), query_offset=[1.0, 2.0]
    )
    Q = rng.normal(size=(5, 4))
    mapped = MappedVectors(both, "queries")(torch.tensor(Q)).detach().numpy()
    np.testing.assert_allclose(mapped, both.embed_queries(Q), atol=1e-12)


@pytest.mark.parametrize("loss", [MLRLoss("map"), ListwiseLoss(1.0), WARPLoss()])
def test_a_network_learns(loss):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = torch.tensor(rng.normal(size=(60, 4)) + 1.5 * np.eye(4)[y], dtype=torch.float32)
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    before = float(ListwiseLoss()(network(X), y).detach())
    for _ in range(60):
        optimizer.zero_grad()
        loss(network(X), torch.as_tensor(y)).backward()
        optimizer.step()
    assert float(ListwiseLoss()(network(X), y).detach()) < before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda Z: MLRLoss("r@3"), "measure must be one of"),
        (lambda Z: MLRLoss("knn-vote@3"), "is for MLR only"),
        (lambda Z: ListwiseLoss(0), "temperature must be above 0"),
        (lambda Z: WARPLoss("squared"), "rank_weights must be one of"),
        (lambda Z: MLRLoss()(Z, np.arange(8)), "got 8 queries without both"),
        (lambda Z: MLRLoss()(Z[0], [0, 0, 1]), r"shape \(n_items, n_dims\): got \(3,\)"),
        (lambda Z: MLRLoss()(Z, [0, 0, 1]), "3 items and 8 rows"),
        (lambda Z: MLRLoss()(Z, graded()), "pass queries="),
        (lambda Z: MappedVectors(None), "got NoneType"),
    ],
)  # fmt: skip
def test_bad_input_stops(call, message, rng):
    Z, _ = points(rng)
    with pytest.raises(ValueError, match=message):
        call(Z)


def test_the_example_trains(capsys):
    script = Path(__file__).parents[2] / "examples" / "train_a_network.py"
    if not script.exists():
        pytest.skip("the examples are not beside the tests")
    spec = importlib.util.spec_from_file_location("train_a_network", script)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    scores = example.main(["--epochs", "2", "--rows", "240"])
    assert list(scores) == ["pixels", "linear map", "two layers"]
    assert all(0.1 < score < 1 for score in scores.values())
    assert "two layers: MAP of new digits 0." in capsys.readouterr().out
