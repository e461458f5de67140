"""Numba kernels: arrays in, arrays out, no checks. Import them inside functions: they compile."""
