"""Names that ROS 2 allows."""

from __future__ import annotations

import re


def topic_words(text: str) -> str:
    """Return a text as words of a topic's name, without the leading slash: ``line.0`` is ``line/_0``.

    Words are of letters, digits and single underscores, and begin with no digit.
    """
    tokens = [re.sub(r'[^A-Za-z0-9_]|_+', '_', token) for token in re.split(r'[./]+', text)]
    tokens = [re.sub('_+', '_', token) for token in tokens if token]
    return '/'.join(f'_{token}' if token[0].isdigit() else token for token in tokens) or '_'
