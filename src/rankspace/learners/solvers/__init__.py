"""Solvers: NumPy, SciPy and kernels; no estimator, file or printer."""
