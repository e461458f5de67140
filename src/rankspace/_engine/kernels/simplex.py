"""Quadratic programs over the simplex: pairwise descent (SMO), and an interior-point method."""

import numpy as np

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


@kernel
def longest_step(values, changes):
    """The longest step up to 1 that leaves all values above 0."""
    step = 1.0
    for i in range(values.size):
        if changes[i] < 0.0:
            step = min(step, -0.995 * values[i] / changes[i])
    return step


@kernel
def interior_point(H, b, C, tolerance, max_steps):
    """Minimise ``1/2 a'Ha + b'a`` over ``a >= 0, sum(a) = C`` by a predictor-corrector method.

    For ill-conditioned H, where pairwise descent creeps.
    """
    m = b.size
    a = np.full(m, C / m)
    gradient = H @ a + b
    t = -np.min(gradient) + np.max(np.abs(gradient)) + 1e-12
    z = gradient + t
    for _ in range(max_steps):
        gap = a @ z
        residual = H @ a + b + t - z
        if gap <= tolerance * C and np.max(np.abs(residual)) <= tolerance:
            break
        K = H.copy()
        for i in range(m):
            K[i, i] += z[i] / a[i]
        ones = np.linalg.solve(K, np.ones(m))
        target, correction = 0.0, np.zeros(m)
        for corrector in range(2):
            complementarity = (target - correction - a * z) / a
            inner = np.linalg.solve(K, complementarity - residual)
            dt = (np.sum(inner) - (C - np.sum(a))) / np.sum(ones)
            da = inner - dt * ones
            dz = complementarity - z / a * da
            if corrector == 0:
                p, d = longest_step(a, da), longest_step(z, dz)
                reached = (a + p * da) @ (z + d * dz)
                target = (reached / gap) ** 3 * gap / m
                correction = da * dz
        step = min(longest_step(a, da), longest_step(z, dz))
        a = a + step * da
        z = z + step * dz
        t += step * dt
    return a
