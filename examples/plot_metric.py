"""
How was this metric learned, and what is it made of?
====================================================

MLR stops when an upper and a lower bound on the best objective meet. The trace in its objective
leaves few directions, and their shares show how many count.
"""

# %%
# Learn on scaled wines.
import matplotlib.pyplot as plt
from sklearn.preprocessing import scale

from rankspace import MLR, leave_one_out
from rankspace.datasets import load_wine
from rankspace.display import ConvergenceDisplay, SpectrumDisplay

wine = load_wine()
X, y = scale(wine.X), wine.labels
model = MLR(measure="map").fit(X, y)

# %%
# The bounds close in on each other; the gap left, divided by C, is ``model.gap_``.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
ConvergenceDisplay.from_estimator(model, ax=axes[0])
SpectrumDisplay.from_metric(model.metric_, ax=axes[1])
plt.show()

# %%
# Every wine ranks all others, before and after. These are the wines it was learned on.
for name, metric in (("Euclidean", None), ("MLR", model.metric_)):
    report = leave_one_out(X, y, metric, ks=(1, 9))
    print(name, {measure: round(value, 3) for measure, value in report.means.items()})
