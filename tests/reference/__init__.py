"""Slow, obvious twins of the library, independent of its code."""
