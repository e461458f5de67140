"""The papers' tables and figures, rerun from recipes."""

from ._recipe import Recipe, list_recipes, load_recipe
from ._run import Outcome, Table, reproduce

__all__ = ["Outcome", "Recipe", "Table", "list_recipes", "load_recipe", "reproduce"]
