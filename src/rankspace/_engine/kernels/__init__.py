"""Compiled kernels: arrays in, arrays out, no checks. Import them where they are used."""
