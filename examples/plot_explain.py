"""
Why did this query gain, and that one lose?
===========================================

A learned map helps most queries and harms some. ``metric.explain`` splits what happened to the
score of a document into directions of the map, and into the training judgments that taught them.
"""

# %%
# A map of the queries is learned from 600 claims of the bundled sample of SciFact, and judged on
# the other 209 training claims. Of these, take the one that gains most and the one that loses most.
import matplotlib.pyplot as plt
import numpy as np

from rankspace import Index, ListwiseMap, evaluate
from rankspace.datasets import load_scifact_sample

claims = load_scifact_sample().part("train")
train, held_out = claims.part(range(600)), claims.part(range(600, 809))
learner = ListwiseMap(
    sides="query", similarity="cosine", unjudged_weight=0.1, random_state=0
)
metric = learner.fit(train.X, train.relevance, queries=train.queries).metric_
before = Index(claims.X, similarity="cosine").rank(held_out.queries)
after = Index(claims.X, metric).rank(held_out.queries)
gains = [
    evaluate(ranking, held_out.relevance, "mrr").values["mrr"]
    for ranking in (before, after)
]
gain = gains[1] - gains[0]
chosen = {"gains most": int(np.argmax(gain)), "loses most": int(np.argmin(gain))}


def place(ranking, query, item):
    """The rank of an item, from 1."""
    return int(np.flatnonzero(ranking[query][0] == item)[0]) + 1


# %%
# The document is the relevant one, compared with unchanged vectors. All scores rise or fall
# together, so the change is to be read against that of a rival: the document that was first
# before, or is first now.
# The last lines name the judgments that taught the map to do this, by their leverage.
explained = {}
for name, query in chosen.items():
    item = int(held_out.relevance.relevant(query)[0])
    # Whoever is first where the relevant document is not.
    firsts = [int(ranking[query][0][0]) for ranking in (before, after)]
    rival = next(document for document in firsts if document != item)
    print(f"The claim that {name}: {held_out.query_texts[query]}")
    print(f"  rank {place(before, query, item)} -> {place(after, query, item)}")
    for role, document in {"relevant": item, "rival": rival}.items():
        found = metric.explain(
            held_out.queries[query],
            claims.X[document],
            "unchanged",
            training=(train.X, train.relevance, train.queries),
        )
        explained[name, role] = found
        print(f"  {role}: {claims.texts[document][:60]}...")
        print(f"    {found.baseline:.3f} -> {found.score:.3f}")
        for part in found.judgments[:2]:
            print(f"    {part.contribution:+.3f} {part.name}")

# %%
# The directions sum to the change of the score exactly. Where both documents rise by the same
# directions, the map learned what claims have in common; where they part, the order changes.
figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
for ax, name in zip(axes, chosen, strict=True):
    for role, colour in {"relevant": "#0072b2", "rival": "#d55e00"}.items():
        found = explained[name, role]
        values = [part.contribution for part in found.directions]
        assert np.isclose(sum(values), found.difference, atol=1e-6)
        ax.plot(np.cumsum(values), color=colour, label=role)
    ax.set(title=f"The claim that {name}", xscale="log", xlabel="directions")
    ax.axhline(0, color="0.7", zorder=0)
axes[0].set_ylabel("change of the score, summed")
axes[0].legend(frameon=False)
plt.show()
