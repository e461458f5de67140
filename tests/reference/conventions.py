"""Checks of scikit-learn that do not hold, and why."""


def expected_failures(estimator):
    """Weights are of queries, so a row of weight 0 is still an item."""
    if not (hasattr(estimator, "transform") or hasattr(estimator, "predict")):
        return {}  # nothing to compare, so the checks pass
    reason = "sample_weight is the weight of a row as a query, not as an item"
    kinds = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in kinds}
