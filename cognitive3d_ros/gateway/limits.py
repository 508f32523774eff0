"""What one client may ask of the gateway."""

from __future__ import annotations

from dataclasses import dataclass

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that a recorder never meets, and that a hostile or broken client meets soon."""

    json_bytes: int = 16 * _MIB
    """Longest JSON body; the recorder closes a part at 256 KiB."""
    binary_bytes: int = 40 * _MIB
    """Longest camera or lidar body; the recorder closes a part at 4 MiB, or with one record of 32 MiB."""
    in_flight_bytes: int = 256 * _MIB
    """All bodies that are held in memory at one time."""
    head_bytes: int = 16 * 1024
    """Longest request line and headers, without the spaces around values."""
    head_s: float = 10.0
    """Longest time for the request line and headers to arrive."""
    grace_s: float = 20.0
    """Time that a body may take whatever its length …"""
    min_bytes_per_s: int = 1024
    """… and the rate at which it must come beyond that."""
    connections: int = 1000
    keep_alive_s: int = 75
    disk_threads: int = 8
    shutdown_s: int = 5
    """Time that requests under way have when the gateway is stopped."""
