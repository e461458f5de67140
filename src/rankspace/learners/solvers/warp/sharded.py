"""Parallel SGD: shards of the queries take steps in parallel, and their factors are averaged.

A factor F of ``W = F F'`` is unique only up to a rotation of its columns, so the mean of two good
factors may be close to zero. Before they are averaged, factors are therefore aligned with the one
that all shards started from (orthogonal Procrustes).
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

SEED_STRIDE = 7919  # difference between the seeds of two shards


def align(F: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Rotate the columns of F so that it is nearest to another factor (orthogonal Procrustes)."""
    U, _, Vt = np.linalg.svd(F.T @ target)
    return F @ (U @ Vt)


class ShardStep(Step):
    """Some SGD steps on one shard of the queries."""

    def __init__(self, descents: list[Descent]) -> None:
        self.descents = descents

    def map_block(
        self, shard: int, state: tuple[dict[str, Any], int]
    ) -> tuple[Any, ...]:
        """The aligned factor after the steps, the progress, and the statistics."""
        fields, n_triplets = state
        progress = Progress(**fields)
        seen = self.descents[shard].run(progress, n_triplets)
        numbers = np.array([progress.distance, progress.squares, progress.draws])
        statistics = np.array([seen.loss, seen.draws, seen.violators, seen.length])
        return align(progress.F, fields["F"]), numbers, statistics


class ShardedDescent:
    """Riemannian SGD as in `Descent`, on several shards in parallel."""

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
        weights: str,
        gamma: float,
        seed: int,
        edges: np.ndarray,
    ) -> ShardedDescent:
        """Assign the queries to shards in turn; each shard has a sampling of its own."""
        n_shards = min(n_shards, relevance.n_queries)
        memory = max(1, options.max_memory // n_shards)
        shard_options = replace(options, max_memory=memory)
        descents = []
        for shard in range(n_shards):
            queries = np.arange(shard, relevance.n_queries, n_shards)
            shard_points = points._replace(query_rows=points.query_rows[queries])
            shard_relevance = relevance.take_queries(queries)
            shard_seed = seed + SEED_STRIDE * shard
            sampling = sampling_of(shard_relevance, weights, gamma, shard_seed)
            descents.append(Descent(shard_points, sampling, shard_options, edges))
        return cls(ShardStep(descents), options.batch_size)

    def run(self, progress: Progress, n_triplets: int) -> Statistics:
        """Draw a number of triplets over all shards, in whole batches, and average the factors."""
        n = len(self.step.descents)
        n_batches = -(-n_triplets // (n * self.batch_size))
        shard_triplets = n_batches * self.batch_size
        fields = {**asdict(progress), "n_triplets": progress.n_triplets // n}
        F, numbers, statistics = current_backend().reduce(
            self.step, range(n), (fields, shard_triplets)
        )
        progress.F = F / n
        progress.distance, progress.squares, progress.draws = (numbers / n).tolist()
        progress.n_triplets += n * shard_triplets
        loss, draws, violators, length = statistics.tolist()
        return Statistics(loss, int(draws), int(violators), length / n, f"{n} shards")
