"""Text in pages and tables, as Markdown and HTML."""
