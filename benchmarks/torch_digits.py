"""Does `MLRLoss` train a network above the best linear map?

The digits of scikit-learn, 60 % of the rows to train, 20 % to validate, 20 % to test, three
splits. `MLRLoss("map")` with Adam, batches of 120 rows, 30 epochs, 16 dimensions; the learning
rate (0.003 or 0.01) and the epoch are chosen by the MAP of validation rows that rank the training
rows. Needs torch.
"""

from __future__ import annotations

import copy
import time
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from _table import publish
from _validation import Part, Split, held_out_map, three_parts, with_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from rankspace import Euclidean
from rankspace.datasets import load_digits
from rankspace.learners.torch import MLRLoss

SPLITS, SHARES = 3, (0.2, 0.2)
RATES, EPOCHS, BATCH = (0.003, 0.01), 30, 120
DIMENSIONS, HIDDEN = 16, 64
INK = 16  # the largest value of a pixel


def networks() -> dict[str, Any]:
    """A linear map and a network with one hidden layer, by their lines in the table."""
    linear = torch.nn.Linear(64, DIMENSIONS, bias=False)
    deep = torch.nn.Sequential(
        torch.nn.Linear(64, HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, DIMENSIONS),
    )
    return {"linear map, 64 to 16": linear, "two layers, 64 to 64 to 16": deep}


def embedded(network: Any, part: Part) -> Part:
    """The rows as the network maps them."""
    with torch.no_grad():
        X = network(torch.as_tensor(part.X, dtype=torch.float32))
    return Part(X.numpy(), part.y)


def quality(network: Any, items: Part, queries: Part) -> float:
    """MAP of rows that rank the training rows in the network's space."""
    items, queries = embedded(network, items), embedded(network, queries)
    return held_out_map(Euclidean().fit(*items), items, queries)


def train_epoch(network: Any, optimizer: Any, train: Part, loss: Any) -> None:
    """One pass over the training rows."""
    for rows in torch.randperm(len(train.y)).split(BATCH):
        X = torch.as_tensor(train.X, dtype=torch.float32)[rows]
        optimizer.zero_grad()
        loss(network(X), train.y[rows.numpy()]).backward()
        optimizer.step()


def best_epoch(network: Any, rate: float, split: Split) -> tuple[float, Any]:
    """The best validation MAP of a run, and the network that has it."""
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    loss = MLRLoss("map")
    best = (-1.0, network)
    for _ in range(EPOCHS):
        train_epoch(network, optimizer, split.train, loss)
        score = quality(network, split.train, split.validation)
        if score > best[0]:
            best = (score, copy.deepcopy(network))
    return best


def trained(label: str, split: Split, seed: int) -> tuple[float, float]:
    """Validation and test MAP of a network, for the rate and the epoch of the best validation."""
    runs = []
    for rate in RATES:
        torch.manual_seed(seed)
        runs.append(best_epoch(networks()[label], rate, split))
    score, network = max(runs, key=itemgetter(0))
    return score, quality(network, split.train, split.test)


def row_of(label: str, splits: list[Split]) -> list[str]:
    """One line of the table."""
    scores = [trained(label, split, seed) for seed, split in enumerate(splits)]
    return [label, *map(with_error, np.transpose(scores))]


def main() -> None:
    torch.set_num_threads(1)
    X, y = load_digits().X / INK, load_digits().labels
    as_they_are = make_pipeline(FunctionTransformer())
    splits = list(three_parts(X, y, as_they_are, shares=SHARES, n=SPLITS))
    pixels = torch.nn.Identity()
    scores = [
        (
            quality(pixels, split.train, split.validation),
            quality(pixels, split.train, split.test),
        )
        for split in splits
    ]
    rows = [["pixels", *map(with_error, np.transpose(scores))]]
    for label in networks():
        rows.append(row_of(label, splits))
        print(rows[-1], f"{time.process_time():.0f} s", flush=True)
    header = ["embedding", "MAP of validation rows", "MAP of test rows"]
    publish("A network trained on MLRLoss: digits", header, rows)


if __name__ == "__main__":
    main()
