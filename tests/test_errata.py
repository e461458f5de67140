"""The page of errata is complete, its tests exist, and points that no other test holds."""

import ast
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from rankspace._engine.kernels.lists import ListEnds, WarpSettings, warp_step
from rankspace.learners.solvers.cutting_plane.admm import PlaneProblem, Trace
from rankspace.learners.solvers.cutting_plane.cones import PSDCone
from rankspace.learners.solvers.geometric.local_metrics import set_scatter

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "errata.md"

# Points of each paper (P) and of its released code (C), so that none is lost.
POINTS = {
    ("MLR", "P"): 2,
    ("MLR", "C"): 12,
    ("FRML", "P"): 7,
    ("FRML", "C"): 2,
    ("LGMML", "P"): 7,
    ("LGMML", "C"): 6,
    ("PARCA", "P"): 7,
    ("ITML", "P"): 1,
}
ALL = [f"{of}-{kind}{i}" for (of, kind), n in POINTS.items() for i in range(1, n + 1)]
LINK = re.compile(r"\[(test_\w+)\]\(\.\./(tests/[\w/]+\.py)\)")


@pytest.fixture(scope="module")
def page():
    if not PAGE.exists():
        pytest.skip("the documentation is not beside the tests")
    return PAGE.read_text()


def entries(page):
    """Text under the heading of each point."""
    parts = re.split(r"^##+ ", page, flags=re.MULTILINE)
    named = (re.match(r"([A-Z]+-[PC]\d+)\. ", part) for part in parts)
    return {name[1]: part for name, part in zip(named, parts, strict=True) if name}


@cache
def functions_in(path):
    return {
        node.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }


def test_the_table_lists_every_point_once_and_in_order(page):
    rows = re.findall(r"^\| (\w+-[PC]\d+) \|", page, re.MULTILINE)
    assert rows == ALL
    assert list(entries(page)) == ALL


def test_the_table_says_how_each_point_was_checked(page):
    rows = re.findall(r"^\| \w+-[PC]\d+ \|.*\| (\w+) \|$", page, re.MULTILINE)
    assert len(rows) == len(ALL)
    assert set(rows) == {"numeric", "run", "read"}


@pytest.mark.parametrize("name", ALL)
def test_a_point_has_both_formulas_an_example_and_a_test(name, page):
    text = entries(page)[name]
    assert "Corrected" in text
    assert "```pycon\n>>> " in text
    assert LINK.search(text.split("Held by")[1])


def test_every_test_of_the_page_exists(page):
    links = LINK.findall(page)
    assert len(links) == len(re.findall(r"\[test_", page))
    for name, path in links:
        assert name in functions_in(ROOT / path), (name, path)


def test_links_to_tests_of_this_file_are_all_those_that_hold_a_point(page):
    own = {name for name, path in LINK.findall(page) if path == "tests/test_errata.py"}
    below = Path(__file__).read_text().split("\n# -----")[1]
    assert own == set(re.findall(r"^def (test_\w+)", below, re.MULTILINE))


# ---------------------------------------------------------------------- points held here


def test_a_change_of_the_penalty_does_not_move_a_solution(rng):
    """Steps of ADMM from a solution stay there if the penalty changes (MLR-C6)."""
    problem = PlaneProblem(PSDCone(4), Trace(PSDCone(4)), C=10.0)
    for _ in range(6):
        psi = rng.normal(size=(4, 4))
        problem.add(psi + psi.T + np.eye(4), 1.0)
    for _ in range(1000):
        problem._step()
    solution, multiplier = problem.Z.copy(), problem.rho * problem.U
    assert np.linalg.norm(solution) > 0.1
    for primal, dual in ((1.0, 0.0), (0.0, 1.0)):
        before = problem.rho
        problem._steps = 0
        problem._balance(primal, dual)
        assert problem.rho != before
        np.testing.assert_allclose(problem.rho * problem.U, multiplier, atol=1e-7)
        problem._step()
        np.testing.assert_allclose(problem.Z, solution, atol=1e-7)


def test_the_trace_with_a_scatter_is_the_mean_squared_distance(rng):
    """Traces of M S and M D, without a further M (LGMML-P1, LGMML-P2)."""
    high, low, factor = (rng.normal(size=(n, 3)) for n in (4, 5, 3))
    metric = factor.T @ factor

    def mean_square(pairs):
        return np.mean([(a - b) @ metric @ (a - b) for a, b in pairs])

    inside = mean_square(
        (high[i], high[j]) for i in range(4) for j in range(4) if i != j
    )
    across = mean_square((a, b) for a in high for b in low)
    S, D = set_scatter(high, low)
    assert np.trace(metric @ S) == pytest.approx(inside)
    assert np.trace(metric @ D) == pytest.approx(across)


def test_a_warp_step_descends_the_loss(rng):
    """A step is along minus the slope, by finite differences, of the hinge (LGMML-P5)."""
    H, margin = rng.random((2, 3)), 0.5
    rank_weights = np.array([0.0, 1.0])
    ends = ListEnds(np.array([0, 2]), np.array([1]), np.array([1]))
    start, rate = np.ones(3), 1e-3

    def score(document, weights):
        """Larger is better: minus the weighted sum."""
        return -sum(w * value for w, value in zip(weights, H[document], strict=True))

    def loss(weights):
        return max(0.0, margin - score(0, weights) + score(1, weights))

    H[0] += 1.0  # the relevant document is the farther one
    weights = start.copy()
    settings = WarpSettings(margin, 0.5, rank_weights, 0)
    assert warp_step(H, ends, 0, weights, settings, rate, 0) == 1
    slopes = [(loss(start + e) - loss(start - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(weights - start, -rate * np.array(slopes), rtol=1e-6)
    assert loss(weights) < loss(start)


def test_the_usual_lda_weighs_classes_by_size(rng):
    """Directions of the scatter with sizes are those of scikit-learn (PARCA-P7)."""
    y = np.repeat([0, 1, 2], [60, 10, 5])
    X = rng.normal(size=(75, 4)) + 3 * rng.normal(size=(3, 4))[y]
    means = np.array([X[y == label].mean(axis=0) for label in range(3)])
    inner, off = X - means[y], means - X.mean(axis=0)

    def leading(weights):
        between = (off.T * weights) @ off
        values, vectors = np.linalg.eig(np.linalg.solve(inner.T @ inner, between))
        first = np.real(vectors[:, np.argmax(np.real(values))])
        return first / np.linalg.norm(first)

    model = LinearDiscriminantAnalysis(solver="eigen", n_components=1).fit(X, y)
    expected = model.scalings_[:, 0] / np.linalg.norm(model.scalings_[:, 0])
    assert abs(leading(np.bincount(y)) @ expected) == pytest.approx(1, abs=1e-9)
    assert abs(leading(np.ones(3)) @ expected) < 0.999
