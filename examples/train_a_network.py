"""
A network trained on a ranking loss
===================================

Images of digits are mapped to 16 dimensions by a linear map and by a network with one hidden layer.
Both are trained on the exact ranking loss of MLR, here for average precision, by the same steps of
Adam, and judged on digits that neither has seen.

``python examples/train_a_network.py`` needs ``pip install '.[torch]'``.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

from rankspace import Index, Relevance, evaluate
from rankspace.datasets import load_digits
from rankspace.learners.torch import MLRLoss

BATCH = 120


def networks() -> dict[str, torch.nn.Module]:
    """A linear map, and one with a hidden layer."""
    return {
        "linear map": torch.nn.Linear(64, 16, bias=False),
        "two layers": torch.nn.Sequential(
            torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 16)
        ),
    }


def train(network: torch.nn.Module, X: torch.Tensor, y: np.ndarray, n_epochs: int):
    """Steps of Adam on batches, each of which ranks its own rows."""
    optimizer = torch.optim.Adam(network.parameters(), lr=0.003)
    loss = MLRLoss("map")
    for _ in range(n_epochs):
        for rows in torch.randperm(len(y)).split(BATCH):
            optimizer.zero_grad()
            loss(network(X[rows]), y[rows.numpy()]).backward()
            optimizer.step()


def mean_average_precision(network, items, queries, relevance) -> float:
    """MAP of queries that rank the items, both as the network maps them."""
    with torch.no_grad():
        mapped, asked = network(items).numpy(), network(queries).numpy()
    return evaluate(Index(mapped).rank(asked), relevance, "map").means["map"]


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Train both, and print the MAP of test digits that rank the training digits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1200, help="digits to learn from")
    options = parser.parse_args(arguments)
    digits = load_digits()
    X = torch.as_tensor(digits.X / 16, dtype=torch.float32)
    order = np.random.default_rng(0).permutation(len(X))
    own, new = order[: options.rows], order[-500:]
    labels, new_labels = digits.labels[own], digits.labels[new]
    relevance = Relevance.from_labels(labels, query_labels=new_labels)
    scores = {}
    torch.manual_seed(0)
    for name, network in {"pixels": torch.nn.Identity(), **networks()}.items():
        if name != "pixels":
            train(network, X[own], labels, options.epochs)
        scores[name] = mean_average_precision(network, X[own], X[new], relevance)
        print(f"{name}: MAP of new digits {scores[name]:.3f}")
    return scores


if __name__ == "__main__":
    main()
