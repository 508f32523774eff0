"""Record what a robot does as Cognitive3D sessions, and read such sessions back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cognitive3d_ros.comments import images_directory
    from cognitive3d_ros.session.session import Session, list_sessions, open_session

__all__ = ['Session', '__version__', 'images_directory', 'list_sessions', 'open_session']
__version__ = '1.0.0'


def __getattr__(name: str) -> Any:
    """Import the reader, and numpy with it, only where it is used: the recorder is not to pay for it."""
    if name in ('Session', 'list_sessions', 'open_session'):
        from cognitive3d_ros.session import session

        return getattr(session, name)
    if name == 'images_directory':
        from cognitive3d_ros.comments import images_directory

        return images_directory
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
