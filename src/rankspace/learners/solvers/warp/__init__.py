"""Riemannian descent of the WARP loss (FRML, LORETA)."""
