"""Parallel SGD: shards of the queries descend at once, and their factors are averaged.

A factor F of ``W = F F'`` is only known up to a rotation of its columns, so the mean of two factors
may be near zero where both are right. Each is therefore turned towards the factor that all came
from, by the rotation that brings it nearest (orthogonal Procrustes), before the mean is taken.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from ...._engine.parallel import Step, current_backend
from ....relevance.relevance import Relevance
from ..points import Points
from .descent import Descent, Options, Progress, Statistics
from .sampling import sampling_of

SEEDS = 7919  # between those of two shards


def turned(F: np.ndarray, towards: np.ndarray) -> np.ndarray:
    """F with its columns rotated so that it is nearest to another factor."""
    U, _, Vt = np.linalg.svd(F.T @ towards)
    return F @ (U @ Vt)


class ShardStep(Step):
    """A stretch of descent on one shard of the queries."""

    def __init__(self, descents: list[Descent]) -> None:
        self.descents = descents

    def map_block(
        self, shard: int, state: tuple[dict[str, Any], int]
    ) -> tuple[Any, ...]:
        """The factor it reaches, turned, and what it has seen."""
        fields, n_triplets = state
        progress = Progress(**fields)
        statistics = self.descents[shard].run(progress, n_triplets)
        seen = np.array(
            [statistics.loss, statistics.draws, statistics.violators, statistics.length]
        )
        moved = np.array([progress.distance, progress.squares, progress.draws])
        return turned(progress.F, fields["F"]), moved, seen


class ShardedDescent:
    """Descends from a `Progress` as `Descent` does, on several shards at once."""

    def __init__(self, step: ShardStep, batch_size: int) -> None:
        self.step = step
        self.batch_size = batch_size

    @classmethod
    def of(
        cls,
        points: Points,
        relevance: Relevance,
        n_shards: int,
        options: Options,
        law: Any,
    ) -> ShardedDescent:
        """Queries go to shards in turn; ``law`` are weights, gamma and seed of triplets."""
        weights, gamma, seed = law
        n_shards = min(n_shards, relevance.n_queries)
        memory = max(1, options.max_memory // n_shards)
        shard_options = replace(options, max_memory=memory)
        descents = []
        for shard in range(n_shards):
            queries = np.arange(shard, relevance.n_queries, n_shards)
            shard_points = points._replace(query_rows=points.query_rows[queries])
            shard_relevance = relevance.take_queries(queries)
            shard_seed = seed + SEEDS * shard
            sampling = sampling_of(shard_relevance, weights, gamma, shard_seed)
            descents.append(Descent(shard_points, sampling, shard_options))
        return cls(ShardStep(descents), options.batch_size)

    def run(self, progress: Progress, n_triplets: int) -> Statistics:
        """Draw so many triplets in all, in whole batches for each shard, and take the mean."""
        n = len(self.step.descents)
        n_batches = -(-n_triplets // (n * self.batch_size))
        each = n_batches * self.batch_size
        fields = {**asdict(progress), "n_triplets": progress.n_triplets // n}
        F, moved, seen = current_backend().reduce(self.step, range(n), (fields, each))
        progress.F = F / n
        progress.distance, progress.squares, progress.draws = (moved / n).tolist()
        progress.n_triplets += n * each
        loss, draws, violators, length = seen.tolist()
        return Statistics(loss, int(draws), int(violators), length / n, f"{n} shards")
