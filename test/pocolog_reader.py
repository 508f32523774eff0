"""A strict reader of Rock logs (pocolog, version 2), written from the format's description alone.

It takes nothing that a reader of Rock might not: indexes in order, four parts to a declaration and nothing
behind them, registries that define what they use, samples that fit their types to the byte, logical times that
do not go back.
"""

import struct
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field

import numpy as np
import yaml

_NUMBERS = {
    ('float', 4): '<f4',
    ('float', 8): '<f8',
    ('sint', 1): 'i1',
    ('sint', 8): '<i8',
    ('uint', 1): 'u1',
    ('uint', 2): '<u2',
    ('uint', 4): '<u4',
}


@dataclass
class Stream:
    name: str
    type: str
    registry: dict
    metadata: dict
    samples: list = field(default_factory=list)  # (time in microseconds, value)


def read(data):
    """Return the streams of a log by name."""
    assert data[:8] == b'POCOSIM\0'
    assert struct.unpack_from('<II', data, 8) == (2, 0)
    streams = []
    at = 16
    while at < len(data):
        kind, _, index, size = struct.unpack_from('<BBHI', data, at)
        payload = data[at + 8 : at + 8 + size]
        assert len(payload) == size
        at += 8 + size
        if kind == 1:
            assert index == len(streams)
            streams.append(_declaration(payload))
        else:
            assert kind == 2
            _sample(streams[index], payload)
    assert at == len(data)
    by_name = {stream.name: stream for stream in streams}
    assert len(by_name) == len(streams)
    return by_name


def _declaration(payload):
    assert payload[0] == 1
    parts, at = [], 1
    for _ in range(4):
        (size,) = struct.unpack_from('<I', payload, at)
        parts.append(payload[at + 4 : at + 4 + size].decode())
        at += 4 + size
    assert at == len(payload)
    name, kind, registry, metadata = parts
    types = _registry(registry)
    assert kind in types
    told = yaml.safe_load(metadata)
    assert all(isinstance(key, str) and isinstance(value, str) for key, value in told.items())
    return Stream(name, kind, types, told)


def _registry(text):
    root = ET.fromstring(text)
    assert root.tag == 'typelib'
    types = {}
    for element in root:
        name = element.get('name')
        assert name not in types
        types[name] = element
    for element in root:
        for used in [element.get('of'), *(each.get('type') for each in element.iter('field'))]:
            if used is not None:
                assert used.partition('[')[0] in types
    for name in types:
        _layout(types, name)
    return types


def _layout(types, name):
    """Return a type's size and alignment in memory; checks those that compounds state."""
    base, _, count = name.partition('[')
    element = types[base]
    if element.tag == 'numeric':
        size = align = int(element.get('size'))
    elif element.tag == 'enum':
        size = align = 4
    elif element.tag == 'container':
        size, align = int(element.get('size')), 8
        assert size == {'/std/string': 32, '/std/vector': 24}[element.get('kind')]
    else:
        end, align = 0, 1
        for each in element.iter('field'):
            inner, inner_align = _layout(types, each.get('type'))
            end = -(-end // inner_align) * inner_align
            assert int(each.get('offset')) == end
            end, align = end + inner, max(align, inner_align)
        size = -(-end // align) * align
        assert size == int(element.get('size'))
    return size * int(count.rstrip(']') or 1), align


def _sample(stream, payload):
    real_s, real_us, logical_s, logical_us, size, compressed = struct.unpack_from(
        '<IIIIIB', payload
    )
    assert (real_s, real_us) == (logical_s, logical_us)
    assert real_us < 1_000_000
    assert compressed == 0
    assert size == len(payload) - 21
    value, end = _value(stream.registry, stream.type, payload, 21)
    assert end == len(payload)
    time_us = logical_s * 1_000_000 + logical_us
    assert not stream.samples or stream.samples[-1][0] <= time_us
    stream.samples.append((time_us, value))


def _value(types, name, data, at):
    base, _, count = name.partition('[')
    element = types[base]
    if count:
        return _numbers(types, base, data, at, int(count.rstrip(']')))
    if element.tag in ('numeric', 'enum'):
        values, at = _numbers(types, base, data, at, 1)
        return values[0].item(), at
    if element.tag == 'container':
        (count,) = struct.unpack_from('<Q', data, at)
        at += 8
        of = element.get('of')
        if types[of].tag == 'numeric':
            values, at = _numbers(types, of, data, at, count)
            return values.tobytes().decode() if of == '/int8_t' else values, at
        values = []
        for _ in range(count):
            value, at = _value(types, of, data, at)
            values.append(value)
        return values, at
    found, start, end = {}, at, 0
    for each in element.iter('field'):
        inner, _ = _layout(types, each.get('type'))
        gap = int(each.get('offset')) - end  # between fields it is in the sample
        assert gap == 0, 'none of our types has any'
        found[each.get('name')], at = _value(types, each.get('type'), data, at)
        end = int(each.get('offset')) + inner
    if set(found) == {'data'}:
        return found['data'], at
    if set(found) == {'microseconds'}:
        return found['microseconds'], at
    assert at > start
    return found, at


def _numbers(types, name, data, at, count):
    element = types[name]
    code = '<i4'
    if element.tag == 'numeric':
        code = _NUMBERS[element.get('category'), int(element.get('size'))]
    values = np.frombuffer(data, code, count, at)
    return values, at + values.nbytes
