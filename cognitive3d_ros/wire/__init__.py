"""Bytes: JSON bodies, Cap'n Proto parts, the frame around a part."""
