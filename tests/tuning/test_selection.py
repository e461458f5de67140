"""Selection of a strength and the decision, beside plain loops and tables of cases."""

import itertools

import numpy as np
import pytest

from rankspace.evaluation.cross_validation import Question
from rankspace.evaluation.significance import ClusteredMean, holm
from rankspace.tuning.selection import choose_strength, cross_fit, decide, outcome

TOLERANCE = 0.01


def question(*means, n=100, spread=0.01, clusters=None, seed=0):
    """Differences of a baseline and of strengths with the given means, and noise."""
    rng = np.random.default_rng(seed)
    noise = spread * rng.normal(size=(len(means), n))
    noise -= noise.mean(axis=1, keepdims=True)
    rows = np.array(means)[:, None] + noise
    rows = np.concatenate((np.zeros((1, n)), rows))
    return Question(rows, np.arange(n) if clusters is None else clusters)


def all_of(known, new):
    """Questions about known and new documents, and the one about all queries."""
    rows = np.concatenate((known.differences, new.differences), axis=1)
    return {"all": Question(rows, np.arange(rows.shape[1])), "known": known, "new": new}


def choose(known, new, prefer="both"):
    return choose_strength(all_of(known, new), prefer, TOLERANCE)


# ---------------------------------------------------------------------- one standard error


def plain_mean_and_error(differences, clusters):
    """Mean and clustered standard error, one cluster after another."""
    mean = sum(differences) / len(differences)
    total, names = 0.0, sorted(set(clusters))
    for name in names:
        pairs = zip(differences, clusters, strict=True)
        total += sum(d - mean for d, cluster in pairs if cluster == name) ** 2
    n = len(names)
    return mean, np.sqrt(total * n / (n - 1)) / len(differences)


def plain_strongest(asked):
    """The first strength whose paired difference from the best is within one standard error."""
    n_strengths = len(asked[0].differences)
    scores = []
    for strength in range(n_strengths):
        scores.append(np.mean([q.differences[strength].mean() for q in asked]))
    best = int(np.argmax(scores))
    for strength in range(n_strengths):
        parts = []
        for q in asked:
            paired = (q.differences[best] - q.differences[strength]).tolist()
            parts.append(plain_mean_and_error(paired, q.clusters.tolist()))
        away = np.mean([mean for mean, _ in parts])
        error = np.sqrt(sum(error**2 for _, error in parts)) / len(parts)
        if away <= error:
            return strength
    raise AssertionError


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("prefer", ["both", "known", "new"])
def test_the_strongest_within_one_standard_error_is_chosen(seed, prefer):
    """All gains are large, so that nothing is harmed."""
    rng = np.random.default_rng(seed)
    clusters = rng.integers(0, 15, size=60)
    known = question(*rng.uniform(0.2, 0.3, 6), n=60, spread=0.2, seed=seed)
    new = question(
        *rng.uniform(0.2, 0.3, 6), n=60, spread=0.2, seed=seed + 99, clusters=clusters
    )
    asked = {"both": [known, new], "known": [known], "new": [new]}[prefer]
    assert choose(known, new, prefer) == plain_strongest(asked)


def test_the_difference_from_the_best_is_paired():
    """Two strengths that differ little for each query, and much from query to query."""
    noise = np.random.default_rng(0).normal(size=100)
    rows = np.stack((np.zeros(100), 0.50 + noise, 0.51 + 1.01 * noise))
    paired = Question(rows, np.arange(100))
    assert choose_strength({"all": paired}, "both", TOLERANCE) == 2
    unpaired = question(0.50, 0.51, spread=1.0)
    assert choose_strength({"all": unpaired}, "both", TOLERANCE) == 1


def test_the_baseline_may_be_chosen():
    useless = question(-0.05, -0.1)
    assert choose(useless, useless) == 0
    noisy = question(0.001, 0.002, spread=0.5)
    assert choose(noisy, noisy) == 0


def test_preferences_choose_by_the_questions_they_name():
    """Known documents gain from weak regularisation, new ones from a strong one."""
    known = question(0.05, 0.10, 0.20)
    new = question(0.10, 0.06, 0.02)
    assert choose(known, new, "known") == 3
    assert choose(known, new, "new") == 1
    assert choose(known, new, "both") == 3
    assert choose(question(0.05, 0.10, 0.12), new, "both") == 2


def test_harm_is_avoided_by_walking_to_stronger_regularisation():
    known = question(0.05, 0.10, 0.30)
    new = question(0.01, -0.0005, -0.05)
    assert choose(known, new, "known") == 3
    assert choose(known, new, "both") == 2
    assert choose(known, question(0.01, -0.02, -0.05), "both") == 1
    assert choose(known, question(-0.02, -0.02, -0.05), "both") == 0
    gains = question(0.02, 0.05, 0.2)
    assert choose(question(0.02, -0.03, -0.05), gains, "new") == 1
    assert choose(gains, gains, "new") == 3


def test_without_known_and_new_all_queries_count():
    everything = question(0.02, 0.05, 0.05)
    for prefer in ("both", "known", "new"):
        assert choose_strength({"all": everything}, prefer, TOLERANCE) == 2


# ---------------------------------------------------------------------- cross-fitting


def random_questions(seed):
    rng = np.random.default_rng(seed)
    n = 150
    known = question(*rng.uniform(-0.02, 0.05, 5), n=n, spread=0.15, seed=seed)
    new = question(*rng.uniform(-0.02, 0.05, 5), n=n, spread=0.15, seed=seed + 1)
    groups = rng.integers(0, 40, size=n)
    by_query = rng.integers(0, 5, size=n)
    known = known._replace(folds=by_query)
    new = Question(new.differences, groups, groups % 5)
    return {"all": known, "known": known, "new": new}


@pytest.mark.parametrize("seed", range(3))
def test_no_query_takes_part_in_choosing_its_strength(seed):
    questions = random_questions(seed)
    chosen = cross_fit(questions, "both", TOLERANCE)
    rng = np.random.default_rng(seed)
    for name, fold in itertools.product(questions, range(5)):
        held_out = questions[name].folds == fold
        others = {}
        for key, q in questions.items():
            rows = q.differences.copy()
            rows[1:, held_out] = rng.normal(size=rows[1:, held_out].shape)
            others[key] = q._replace(differences=rows)
        again = cross_fit(others, "both", TOLERANCE)
        assert np.unique(chosen[name][held_out]).size == 1
        np.testing.assert_array_equal(again[name][held_out], chosen[name][held_out])


def test_each_fold_has_the_strength_that_the_others_choose():
    questions = random_questions(5)
    chosen = cross_fit(questions, "both", TOLERANCE)
    for name, fold in itertools.product(questions, range(5)):
        kept = questions[name].folds != fold
        others = {}
        for key, q in questions.items():
            rows = q.differences.copy()
            rows[:, ~kept] = np.nan
            others[key] = q._replace(differences=rows)
        expected = choose_strength(others, "both", TOLERANCE)
        assert (chosen[name][~kept] == expected).all()


def test_cross_fitting_is_not_optimistic():
    """Noise alone: the strength that looks best gains nothing where it did not choose."""
    means = []
    for seed in range(60):
        rows = np.random.default_rng(seed).normal(size=(7, 60))
        rows[0] = 0
        noise = {"all": Question(rows, np.arange(60), np.arange(60) % 5)}
        chosen = cross_fit(noise, "both", 1.0)
        means.append(rows[chosen["all"], np.arange(60)].mean())
    assert np.mean(means) < 3 * np.std(means) / np.sqrt(len(means))


# ---------------------------------------------------------------------- outcomes, decisions


@pytest.mark.parametrize(
    ("mean", "error", "expected"),
    [
        (0.05, 0.01, "safe"),
        (0.0, 0.001, "safe"),
        (-0.005, 0.001, "harmed"),  # surely below 0
        (-0.005, 0.01, "undecided"),
        (-0.01, 0.0, "harmed"),  # surely below 0
        (-0.02, 1.0, "harmed"),  # loses more than the tolerance
        (0.02, 0.05, "undecided"),
        (0.0, np.nan, "undecided"),
    ],
)
def test_outcomes(mean, error, expected):
    assert outcome(ClusteredMean(mean, error, 100, 100), TOLERANCE) == expected


def one(mean, spread, n=100, clusters=None):
    """The question of a procedure that was chosen, one row."""
    q = question(mean, n=n, spread=spread, clusters=clusters)
    return Question(q.differences[1:], q.clusters)


CASES = {
    "gain": one(0.1, 0.05),
    "safe": one(0.0, 0.01),
    "undecided": one(0.0, 0.5),
    "harmed": one(-0.1, 0.05),
    "few queries": one(0.3, 0.05, n=20),
    "few groups": one(-0.1, 0.05, clusters=np.arange(100) % 9),
}


@pytest.mark.parametrize(
    ("prefer", "overall", "known", "new", "decision"),
    [
        ("both", "gain", "gain", "gain", "ship"),
        ("both", "gain", "gain", "safe", "ship"),
        ("both", "gain", "gain", "undecided", "known only"),
        ("both", "gain", "gain", "harmed", "keep"),
        ("both", "gain", "harmed", "gain", "keep"),
        ("both", "gain", "undecided", "gain", "ship"),
        ("both", "safe", "safe", "safe", "keep"),
        ("both", "safe", "gain", "safe", "keep"),
        ("both", "gain", "gain", "few queries", "ship"),
        ("both", "gain", "gain", "few groups", "ship"),
        ("both", "gain", "few queries", "gain", "ship"),
        ("both", "gain", "few queries", "harmed", "keep"),
        ("known", "safe", "gain", "harmed", "known only"),
        ("known", "safe", "gain", "undecided", "known only"),
        ("known", "safe", "gain", "gain", "ship"),
        ("known", "gain", "safe", "gain", "keep"),
        ("known", "gain", "harmed", "gain", "keep"),
        ("known", "gain", "few queries", "gain", "ship"),
        ("new", "gain", "gain", "safe", "keep"),
        ("new", "gain", "gain", "undecided", "keep"),
        ("new", "gain", "harmed", "gain", "keep"),
        ("new", "safe", "safe", "gain", "ship"),
        ("new", "safe", "undecided", "gain", "ship"),
        ("new", "gain", "gain", "few queries", "ship"),
    ],
)
def test_decisions(prefer, overall, known, new, decision):
    questions = {"all": CASES[overall], "known": CASES[known], "new": CASES[new]}
    verdict = decide(questions, prefer, TOLERANCE)
    assert verdict.decision == decision
    for name, case in (("known", known), ("new", new)):
        assert (name in verdict.outcomes) == (not case.startswith("few"))


def test_ten_groups_are_enough():
    ten = one(-0.1, 0.05, clusters=np.arange(100) % 10)
    questions = {"all": CASES["gain"], "known": CASES["gain"], "new": ten}
    assert decide(questions, "both", TOLERANCE).outcomes["new"] == "harmed"


def test_values_that_could_not_be_measured_ship_nothing():
    nothing = Question(np.full((1, 40), np.nan), np.arange(40))
    questions = dict.fromkeys(("all", "known", "new"), nothing)
    assert decide(questions, "both", TOLERANCE).decision == "keep"


def test_the_level_decides():
    gain = {"all": one(0.02, 0.1)}
    p_value = decide(gain, "both", TOLERANCE).p_value
    assert 0.01 < p_value < 0.04
    for alpha, decision in ((1.01 * p_value, "ship"), (0.99 * p_value, "keep")):
        assert decide(gain, "both", TOLERANCE, alpha).decision == decision


# ---------------------------------------------------------------------- Holm


def plain_holm(p_values, alpha):
    """Rejections by Holm's definition: the k-th smallest, while each before it is rejected."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    rejected = set()
    for k, number in enumerate(order):
        if p_values[number] > alpha / (len(p_values) - k):
            break
        rejected.add(number)
    return rejected


@pytest.mark.parametrize("seed", range(20))
def test_holm_rejects_what_its_definition_rejects(seed):
    rng = np.random.default_rng(seed)
    p_values = (rng.uniform(size=rng.integers(1, 7)) ** 4 / 5).tolist()
    levels = holm(p_values, 0.025)
    tested = zip(p_values, levels, strict=True)
    found = {number for number, (p, level) in enumerate(tested) if p <= level}
    assert found == plain_holm(p_values, 0.025)


def test_one_method_has_the_whole_level():
    assert holm([0.02], 0.025) == [0.025]
    assert holm([], 0.025) == []
    assert holm([0.02, 0.02], 0.025) == [0.0125, 0.0125]
    assert holm([0.02, 0.001], 0.025) == [0.025, 0.0125]
