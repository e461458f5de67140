"""The 1-slack cutting plane (MLR, RobustMLR, SVMMAP)."""
