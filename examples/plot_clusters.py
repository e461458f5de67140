"""
Which pixels, and which words, tell the same?
=============================================

Logistic PARCA gives every feature a membership in each component. The entropy in its objective
makes memberships sharp, so features fall into clusters.
"""

# %%
# Pixels of digits fall into regions; paler where a pixel belongs to several.
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
# Features with names are listed, those first that make the largest distances.
wdbc = load_wdbc()
scaled = wdbc.X / wdbc.X.max(axis=0)
model = LogisticPARCA(3, beta=0.3, random_state=0).fit(scaled[::2], wdbc.labels[::2])
TopicsDisplay.from_estimator(model, wdbc.feature_names, n=6)
plt.show()
