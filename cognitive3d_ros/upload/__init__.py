"""Delivery of parts to the platform or to a gateway of one's own."""
