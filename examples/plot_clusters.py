"""
Which features carry the same information?
==========================================

Logistic PARCA learns the membership of every feature in each component. The entropy term of its
objective makes memberships sharp, so features form clusters.
"""

# %%
# Pixels of digits form regions. A pixel is paler if it belongs to several.
import matplotlib.pyplot as plt

from rankspace import LogisticPARCA
from rankspace.datasets import load_digits, load_wdbc
from rankspace.display import PixelClustersDisplay, TopicsDisplay

digits = load_digits()
model = LogisticPARCA(4, beta=0.3, random_state=0).fit(
    digits.X[::4], digits.labels[::4]
)
PixelClustersDisplay.from_estimator(model, (8, 8))
plt.show()

# %%
# Features with names are listed, those with the largest effect on distances first.
wdbc = load_wdbc()
scaled = wdbc.X / wdbc.X.max(axis=0)
model = LogisticPARCA(3, beta=0.3, random_state=0).fit(scaled[::2], wdbc.labels[::2])
TopicsDisplay.from_estimator(model, wdbc.feature_names, n=6)
plt.show()
