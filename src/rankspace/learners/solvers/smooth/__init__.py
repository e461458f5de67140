"""Smooth losses over a linear map (ListwiseMap, LMNN, MLCC, PARCA)."""
