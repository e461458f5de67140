"""Scatter matrices and their geometric mean (GMML, LGMML)."""
