"""What became of everything that came in: for each input a sum that closes.

received = stored + decimated + gated + dropped + decode_failures + pose_failures: each message is counted on
the left once, and on the right once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cognitive3d_ros.counters import Count, Drop, Fate, Key, LeftOut, Missed

if TYPE_CHECKING:
    from cognitive3d_ros.parameters import (
        ActionConfig,
        CameraConfig,
        Config,
        LidarConfig,
        SensorConfig,
        TopicConfig,
    )

    _Named = CameraConfig | LidarConfig | TopicConfig | SensorConfig | ActionConfig

PROPERTY: Final = 'c3d.account.'
"""Before the name of an input: the session property that holds its account."""

LOSSES: Final = 'c3d.losses'
"""The session property that says what was lost, where anything was: see :func:`losses`."""

_LOST_COUNTS: Final = (Count.MESSAGES_LOST, Count.PARTS_EVICTED, Count.PARTS_QUARANTINED)
_LOST: Final = (Fate.DECODE_FAILURES, Fate.POSE_FAILURES, Missed.MESSAGES)
_OUTCOMES: Final = tuple(fate for fate in Fate if fate is not Fate.RECEIVED)
_TERM: Final = re.compile(r'(\d+) (\w+)(?: \([^)]*\))?')


@dataclass(frozen=True, slots=True)
class Account:
    """The account of one input; what is missing in the mappings is 0.

    ``reasons`` says of what was dropped why, ``left_out`` what is missing in what was stored.
    """

    source: str
    fates: Mapping[Fate, int]
    reasons: Mapping[Drop, int]
    left_out: Mapping[LeftOut, int]

    @property
    def received(self) -> int:
        """How many messages came in."""
        return self.fates.get(Fate.RECEIVED, 0)

    @property
    def open(self) -> int:
        """How many of them nothing is said of: 0, or the books are wrong."""
        return self.received - sum(self.fates.get(fate, 0) for fate in _OUTCOMES)

    @property
    def title(self) -> str:
        """The input in words: ``front camera``."""
        kind, _, name = self.source.partition('.')
        return f'{name} {kind}' if name else kind

    def __str__(self) -> str:
        """Return it as a sum: ``1800 received = 300 stored + 1500 decimated``."""
        terms = []
        for fate in _OUTCOMES:
            if count := self.fates.get(fate, 0):
                reasons = self.reasons if fate is Fate.DROPPED else {}
                why = ', '.join(f'{n} {reason.value}' for reason, n in reasons.items())
                terms.append(f'{count} {fate.value}' + (f' ({why})' if why else ''))
        if self.open:
            terms.append(f'{self.open} unaccounted')
        text = f'{self.received} received = ' + ' + '.join(terms or ['0 stored'])
        left = ', '.join(f'{n} {what.value}' for what, n in self.left_out.items())
        return f'{text}; left out of these: {left}' if left else text


def configured(config: Config) -> list[str]:
    """Return the inputs that a configuration asks for, as the ledger names them."""
    kinds: dict[str, Sequence[_Named]] = {
        'camera': config.cameras,
        'lidar': config.lidars,
        'topic': config.topics,
        'sensor': config.sensors,
        'action': config.actions,
    }
    return [f'{kind}.{member.name}' for kind, members in kinds.items() for member in members]


def accounts(
    before: Mapping[Key, int], now: Mapping[Key, int], expected: Iterable[str] = ()
) -> list[Account]:
    """Return the accounts of all inputs that something came in on between two looks at the ledger.

    Those that are ``expected`` have one even where nothing did.
    """
    counted: dict[str, dict[Fate | Drop | LeftOut | Missed, int]] = {}
    for key, count in now.items():
        if isinstance(key, tuple) and (more := count - before.get(key, 0)):
            what, source = key
            counted.setdefault(source, {})[what] = more
    books = {
        source: Account(
            source,
            {what: n for what, n in counts.items() if isinstance(what, Fate)},
            {what: n for what, n in counts.items() if isinstance(what, Drop)},
            {what: n for what, n in counts.items() if isinstance(what, LeftOut)},
        )
        for source, counts in counted.items()
        if Fate.RECEIVED in counts
    }
    for source in expected:
        books.setdefault(source, Account(source, {}, {}, {}))
    return [books[source] for source in sorted(books)]


def losses(counted: Mapping[Key, int], source: str = '') -> str:
    """Say what was lost: of each input how much and why, then what was lost of all alike.

    ``camera.front: 3 queue_full, 1 decode_failures; events: 2 bad_event; c3d.parts_evicted: 4``. What the
    recorder takes itself has the name of its stream: ``gaze: 12 spool_full``. Empty where nothing was lost;
    what is left out of messages that are stored is no loss of a record, and what had no value neither.

    Args:
        counted: what was counted, by key of the ledger.
        source: the one input that is asked for; all, and what was lost of all alike, if empty.
    """
    reasons: dict[str, list[str]] = {}
    for key, n in counted.items():
        if isinstance(key, tuple) and n and source in ('', key[1]):
            what, name = key
            if what.is_loss if isinstance(what, Drop) else what in _LOST:
                reasons.setdefault(name, []).append(f'{n} {what.value}')
    if source:
        return ', '.join(sorted(reasons.get(source, [])))
    texts = [f'{name}: {", ".join(sorted(each))}' for name, each in sorted(reasons.items())]
    texts += [f'{count.value}: {n}' for count in _LOST_COUNTS if (n := counted.get(count, 0))]
    return '; '.join(texts)


def nothing_came(text: str) -> bool:
    """Say whether an account that a session holds as text is that of an input that nothing came in on."""
    return text.startswith('0 received = ')


def adds_up(text: str) -> bool:
    """Say whether an account that a session holds as text adds up."""
    left, equals, right = text.partition(';')[0].partition(' received = ')
    terms = [_TERM.fullmatch(term) for term in right.split(' + ')]
    if not (equals and left.isdigit()):
        return False
    counts = [int(term[1]) for term in terms if term is not None and term[2] != 'unaccounted']
    return len(counts) == len(terms) and sum(counts) == int(left)
