"""Messages, or anything with their fields, to records: one module a kind."""
