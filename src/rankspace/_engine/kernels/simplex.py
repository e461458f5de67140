"""Quadratic programs over the simplex: pairwise coordinate descent (SMO)."""

from ..compiled import kernel


@kernel
def exchange(H, gradient, a, tolerance, max_steps):
    """Pairwise coordinate descent (SMO): move weight between the best pair, in place.

    The variable with the smallest gradient receives weight. The one that gives weight is chosen by
    the decrease of the objective. Returns whether no slope above the tolerance is left.
    """
    m = a.size
    for _ in range(max_steps):
        low = 0
        for i in range(1, m):
            if gradient[i] < gradient[low]:
                low = i
        high, best, worst = -1, 0.0, 0.0
        for j in range(m):
            slope = gradient[j] - gradient[low]
            if a[j] <= 0.0 or slope <= 0.0:
                continue
            worst = max(worst, slope)
            curvature = max(H[low, low] + H[j, j] - 2.0 * H[low, j], 1e-300)
            step = min(slope / curvature, a[j])
            decrease = step * (slope - 0.5 * curvature * step)
            if decrease > best:
                best, high = decrease, j
        if high < 0 or worst <= tolerance:
            return True
        slope = gradient[high] - gradient[low]
        curvature = max(H[low, low] + H[high, high] - 2.0 * H[low, high], 1e-300)
        if slope / curvature >= a[high]:
            step = a[high]
            a[high] = 0.0
        else:
            step = slope / curvature
            a[high] -= step
        a[low] += step
        for i in range(m):
            gradient[i] += step * (H[i, low] - H[i, high])
    return False
