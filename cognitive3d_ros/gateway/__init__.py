"""The ingest server that takes what the recorder sends, and its store."""
