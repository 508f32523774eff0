"""Where things are sent: the addresses and headers of the gateway's interface."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import quote, urlsplit

from cognitive3d_ros import __version__

USER_AGENT = f'cognitive3d_ros/{__version__}'
_PRINTABLE = re.compile(r'[\x21-\x7e]+')


def part_url(gateway: str, stream: str, scene_id: str, scene_version: int) -> str:
    """Return the address that takes the parts of one stream of one scene version."""
    path = f'{quote(stream, safe="")}/{quote(scene_id, safe="")}'
    return f'{gateway.rstrip("/")}/v0/{path}?version={scene_version}'


def remote_variables_url(gateway: str, identifier: str) -> str:
    """Return the address of the remote variables of a participant or device."""
    return f'{gateway.rstrip("/")}/v0/remotevariables?identifier={quote(identifier, safe="")}'


def authorization(key: str | None) -> dict[str, str]:
    """Return the headers that show an application key; none without a key."""
    return {} if key is None else {'Authorization': f'APIKEY:DATA {key}'}


def header_safe(text: str) -> bool:
    """Tell whether a text can stand in a header as it is: visible ASCII, no spaces."""
    return _PRINTABLE.fullmatch(text) is not None


def host(url: str) -> str:
    """Return host and port of an address, without any user name and password in it."""
    try:
        return urlsplit(url).netloc.rpartition('@')[2]
    except ValueError:
        return 'an address that is none'


def is_loopback(url: str) -> bool:
    """Tell whether an address is this machine's own."""
    try:
        name = urlsplit(url).hostname or ''
        return name == 'localhost' or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
