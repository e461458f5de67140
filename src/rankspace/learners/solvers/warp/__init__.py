"""Riemannian SGD on the WARP loss (FRML, LORETA)."""
