"""Internals that all subpackages use: kernels, parallel computing, vectors and files."""
