"""Experiments: the tables and figures of the papers, reproduced from recipes."""

from .recipe import Recipe, list_recipes, load_recipe
from .run import Outcome, Table, reproduce

__all__ = ["Outcome", "Recipe", "Table", "list_recipes", "load_recipe", "reproduce"]
