"""The heavy part of a learner, as a sum over blocks of its data."""

from __future__ import annotations

from typing import Any, Protocol


class Step(Protocol):
    """The heavy part of a learner, as a sum over blocks of its data.

    It may also have ``prepare(state)``, which makes out of the state of a round what all blocks of
    the round share, and ``part(blocks)``, a step with only the data that these blocks need.
    """

    def map_block(self, block: Any, state: Any) -> Any:
        """What a block gives: sums that `plus` can add."""


def prepare(step: Any, state: Any) -> Any:
    """What all blocks of a round share."""
    return step.prepare(state) if hasattr(step, "prepare") else state
