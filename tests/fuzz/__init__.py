"""Fuzzing of every reader: seeds (``seeds``), mutators (``mutate``), targets and long sessions."""
