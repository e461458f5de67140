"""Ranking measures as scorers for scikit-learn's model selection."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest

from ..evaluation.custom import CustomMeasure
from ..evaluation.measures import named_and_custom
from .base import BaseRanker

METADATA = ("sample_weight", "queries", "qid")


def scorer(measure: str | CustomMeasure) -> Scorer:
    """Scorer for scikit-learn's model selection: any ranking measure, larger is better.

    It ranks as the method ``score`` of every estimator does: rows of ``X`` rank each other,
    separate queries rank all of ``X``, candidate lists are ranked within their query. In a
    `Pipeline`, ``queries`` go through the same steps as ``X``.

    Parameters
    ----------
    measure : str or callable
        One measure of those that `evaluate` takes. A measure of error is negated, so that larger
        is better.

    Returns
    -------
    callable
        Pass it as ``scoring``. It is called with a fitted estimator, ``X``, ``y``, and optionally
        ``sample_weight``, ``queries`` and ``qid``, which metadata routing passes on.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from sklearn.preprocessing import scale
    >>> from rankspace import GMML, scorer
    >>> X, y = load_wine(return_X_y=True)
    >>> folds = KFold(3, shuffle=True, random_state=0)
    >>> search = GridSearchCV(GMML(), {"t": [0, 1]}, scoring=scorer("ndcg@10"), cv=folds)
    >>> search.fit(scale(X), y).best_params_
    {'t': 0}
    """
    names, custom = named_and_custom(measure)
    if len(names) + len(custom) != 1:
        raise ValueError(f"a scorer takes one measure: got {', '.join(names)}.")
    return Scorer(custom[0] if custom else names[0])


class Scorer:
    """A measure with the signature of scikit-learn's scorers."""

    def __init__(self, measure: str | CustomMeasure) -> None:
        self.measure = measure

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        queries: Any = None,
        qid: Any = None,
    ) -> float:
        ranker, X, queries = _last_step(estimator, X, queries)
        report = ranker._evaluate(X, y, sample_weight, queries, qid, self.measure)
        sign = -1.0 if report.smaller_is_better else 1.0
        return sign * next(iter(report.means.values()))

    def get_metadata_routing(self) -> MetadataRequest:
        """What metadata routing passes on to this scorer."""
        request = MetadataRequest(owner=self)
        for name in METADATA:
            request.score.add_request(param=name, alias=True)
        return request

    def __repr__(self) -> str:
        return f"scorer({self.measure!r})"


def _last_step(estimator: Any, X: Any, queries: Any) -> tuple[BaseRanker, Any, Any]:
    """The learner at the end of pipelines and searches, and what reaches it."""
    while not isinstance(estimator, BaseRanker):
        if isinstance(estimator, Pipeline):
            steps = estimator[:-1]
            if len(steps):
                X = steps.transform(X)
                queries = None if queries is None else steps.transform(queries)
            estimator = estimator[-1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            raise TypeError(
                "a scorer of rankings needs an estimator of rankspace, or a Pipeline that ends in "
                f"one: got {type(estimator).__name__}."
            )
    return estimator, X, queries
