"""Internals that all subpackages use: kernels, parallel computing, vectors and files."""

import os

# As it was before anything else in the process could change it; see `parallel.threads.n_threads`.
OMP_NUM_THREADS = os.environ.get("OMP_NUM_THREADS", "")
