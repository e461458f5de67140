"""Learn the space in which nearest means most relevant."""

__version__ = "0.1.0.dev0"
