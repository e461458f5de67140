"""The 1-slack cutting-plane solver of structural SVMs (MLR, RobustMLR, SVMMAP)."""
