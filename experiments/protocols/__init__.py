"""Evaluation protocols: each module has ``run(recipe, jobs)``, which returns an `Outcome`."""
