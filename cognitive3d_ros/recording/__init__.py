"""The session: pose timeline, events, properties, health; start, end, recovery."""
