"""The command line: ``rankspace VERB ...``."""
