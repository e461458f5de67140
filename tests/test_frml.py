"""FRML."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from rankspace import FRML


@parametrize_with_checks([FRML(2, max_triplets=640, check_every=320)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
