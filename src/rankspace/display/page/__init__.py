"""The self-contained HTML report page: sections, tables, SVG pictures and style."""
