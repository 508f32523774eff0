"""Numbers as they stand in JSON bodies: five decimals, half to even, shortest form, no exponent, no −0.

Source: data format, Timestamps and Coordinates and units (five decimal places).
"""

from __future__ import annotations

_NS_PER_TICK = 10_000  # five decimals of a second
TICKS_PER_S = 100_000


def number(value: float) -> str:
    """Return a finite number with at most five decimals; ``repr`` would bring exponents."""
    text = f'{value:.5f}'.rstrip('0').rstrip('.')
    return '0' if text == '-0' else text


def vector(values: tuple[float, ...]) -> str:
    """Return finite numbers as a JSON list."""
    return '[' + ','.join(map(number, values)) + ']'


def ticks(time_ns: int) -> int:
    """Return nanoseconds in units of 1e-5 s, half to even.

    A float holds epoch seconds only to 2e-7, so the rounding is done on the integer.
    """
    whole, rest = divmod(time_ns, _NS_PER_TICK)
    half = _NS_PER_TICK // 2
    return whole + (rest > half or (rest == half and whole & 1 == 1))


def seconds(time_ns: int) -> str:
    """Return nanoseconds as seconds with at most five decimals, exactly."""
    count = ticks(time_ns)
    if count < 0:
        return '-' + seconds(-count * _NS_PER_TICK)
    whole, decimals = divmod(count, TICKS_PER_S)
    return f'{whole}.{decimals:05d}'.rstrip('0').rstrip('.') if decimals else str(whole)


def elapsed(start_ns: int, end_ns: int) -> int | float:
    """Return the seconds between two times as they are stored: the difference of their five decimals."""
    return rounded((ticks(end_ns) - ticks(start_ns)) / TICKS_PER_S)


def rounded(value: float) -> int | float:
    """Return a property's number: five decimals, and an integer where that is whole."""
    result = round(value, 5)
    return int(result) if result == int(result) else result
