"""
Convergence and spectrum of a learned metric
============================================

MLR stops when the upper and the lower bound on the optimal objective meet. The trace in its
objective favours low rank; the spectrum of the metric shows how many directions matter.
"""

# %%
# Fit on standardised features of wines.
import matplotlib.pyplot as plt
from sklearn.preprocessing import scale

from rankspace import MLR, leave_one_out
from rankspace.datasets import load_wine
from rankspace.display import ConvergenceDisplay, SpectrumDisplay

wine = load_wine()
X, y = scale(wine.X), wine.labels
model = MLR(measure="map").fit(X, y)

# %%
# The bounds converge; the remaining gap, divided by C, is ``model.gap_``.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
ConvergenceDisplay.from_estimator(model, ax=axes[0])
SpectrumDisplay.from_metric(model.metric_, ax=axes[1])
plt.show()

# %%
# Leave-one-out error before and after, on the training data: every wine ranks all others.
for name, metric in (("Euclidean", None), ("MLR", model.metric_)):
    report = leave_one_out(X, y, metric, ks=(1, 9))
    print(name, {measure: round(value, 3) for measure, value in report.means.items()})
