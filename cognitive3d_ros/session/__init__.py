"""The reader of stored sessions."""
