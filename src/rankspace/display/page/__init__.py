"""The self-contained HTML page: its text, style and pictures."""
