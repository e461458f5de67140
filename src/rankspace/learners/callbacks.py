"""Callbacks of scikit-learn 1.9 and later: progress, scores after each round, early stopping."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from .base import BaseRanker

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for the mixin of later versions; there are no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """The method as it is."""
        return method


class Rounds:
    """The rounds of a fit, as its callbacks see them.

    A round is a subtask of the fit. Both of its hooks are called when it ends, as only then it is
    known that there was one.
    """

    def __init__(self, learner: Any, most: int | None, data: dict[str, Any]) -> None:
        self.learner = learner
        self.data = data
        self.stopped = False
        self.context = None
        if hasattr(learner, "_init_callback_context"):
            self.context = learner._init_callback_context(max_subtasks=most)
            self.context.call_on_fit_task_begin(estimator=learner, **data)

    def report(self, fitted: Callable[[], dict[str, Any]]) -> bool:
        """Whether a callback asks to stop after a round; ``fitted`` makes the fitted attributes."""
        if self.context is not None:
            task = self.context.subcontext(task_name="round")
            task.call_on_fit_task_begin(estimator=self.learner, **self.data)
            self.stopped = task.call_on_fit_task_end(
                estimator=self.learner, reconstruction_attributes=fitted, **self.data
            )
        return self.stopped

    def end(self) -> None:
        """Report that the fit has ended."""
        if self.context is not None:
            self.context.call_on_fit_task_end(
                estimator=self.learner, reconstruction_attributes={}, **self.data
            )


class CallbackFit(CallbackSupportMixin, BaseRanker):
    """Mixin of learners that report each round to callbacks of scikit-learn.

    A subclass calls ``self._rounds.report`` after each round, and says in ``_most_rounds`` how many
    there are at most.
    """

    _rounds = Rounds(None, None, {})  # outside of `fit` nobody is told

    def _most_rounds(self) -> int | None:
        return None

    @with_callbacks
    def _fit(
        self,
        X: Any,
        y: Any,
        queries: Any,
        qid: Any,
        sample_weight: Any = None,
        **options: Any,
    ) -> Self:
        given = {"sample_weight": sample_weight, "queries": queries, "qid": qid}
        metadata = {name: v for name, v in given.items() if v is not None}
        data = {"X": X, "y": y, "metadata": metadata}
        self._rounds = Rounds(self, self._most_rounds(), data)
        try:
            super()._fit(X, y, queries, qid, sample_weight, **options)
            self._rounds.end()
        finally:
            del self._rounds
        return self
