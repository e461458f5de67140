"""What every room stands on: kernels, threads, clusters, files. Imports nothing of the house."""
