"""The page: its sections, one under the other, with style and script inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import resources
from typing import Any, Final

import numpy as np

from cognitive3d_ros import __version__
from cognitive3d_ros.report.charts import charts, lanes
from cognitive3d_ros.report.clouds import clouds
from cognitive3d_ros.report.pictures import pictures
from cognitive3d_ros.report.plan import plan
from cognitive3d_ros.report.svg import clock, embedded, plural, table, tag, text
from cognitive3d_ros.report.view import View
from cognitive3d_ros.session.session import Session
from cognitive3d_ros.session.summary import metres, summary
from cognitive3d_ros.session.verify import Finding, Kind, verify

_MOST_EVENTS: Final = 500
_SECTIONS: Final = 8

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Report:
    """A report: the page, and what is wrong with the session."""

    page: str
    findings: tuple[Finding, ...]


@np.errstate(over='ignore', invalid='ignore')
def make_report(session: Session, *, progress: Progress | None = None) -> Report:
    """Make a report of a session: one HTML page that refers to nothing outside itself.

    All of the session is read. What cannot be read is named in the page.
    """
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done / _SECTIONS)

    findings = verify(session)
    step()
    facts = summary(session)
    view = View(session)
    step()
    picture, cursor = plan(view)
    step()
    cloud, points = clouds(view)
    step()
    frames = pictures(view)
    step()
    series = charts(view)
    step()
    sections = [
        _head(view, facts),
        _verdict(findings),
        tag('section', tag('h2', 'Path'), _frame_line(view, facts), picture, id='path'),
        tag('section', tag('h2', 'Time'), lanes(view), id='time'),
        _section('Pictures', frames),
        tag('section', tag('h2', 'Series'), series, id='series'),
        _section('Points', cloud),
        _section('Events', _events(view)),
        _section('Health', _health(facts)),
        _section('Properties', _properties(facts)),
    ]
    step()
    data = embedded('cursor', {**cursor, 'length': view.end - view.start})
    page = _page(view, ''.join(sections) + data + embedded('clouds', points))
    step()
    return Report(page, tuple(findings))


def _page(view: View, body: str) -> str:
    title = tag('title', text(_title(view)))
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f'{title}<style>{_asset("report.css")}</style>'
    )
    made = datetime.now(timezone.utc).strftime('%Y-%m-%d %H:%M UTC')
    foot = tag('footer', text(f'Made by cognitive3d_ros {__version__}, {made}'))
    script = f'<script>{_asset("report.js")}</script>'
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>'
        f'<body><main>{body}{foot}</main>{script}</body></html>\n'
    )


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath('assets').joinpath(name).read_text('utf-8')


def _title(view: View) -> str:
    name = str(view.session.properties.get('c3d.sessionname', ''))
    return name if name and name != view.session.id else f'Session {view.session.id}'


def _section(title: str, content: str) -> str:
    return tag('section', tag('h2', title), content, id=title.lower()) if content else ''


def _head(view: View, facts: dict[str, Any]) -> str:
    started = datetime.fromtimestamp(view.start, timezone.utc).strftime('%Y-%m-%d %H:%M:%S UTC')
    timeline = facts['pose_timeline']
    cells = [
        ('Robot', facts['device_id']),
        ('Started', started),
        ('Length', clock(facts['duration'])),
        ('Path', f'{metres(timeline["path_m"], 1)} m' if timeline['samples'] else 'none'),
        ('Ended', facts['state']),
        ('Scene', f'{facts["scene_id"]} version {facts["scene_version"]}'),
    ]
    participant = facts['properties'].get('c3d.participant.id', '')
    if participant and participant != facts['device_id']:
        cells.insert(1, ('Participant', participant))
    told = (tag('div', tag('dt', name), tag('dd', text(value))) for name, value in cells)
    comment = tag('p', text(facts['comment']), class_='comment') if facts['comment'] else ''
    return tag(
        'header',
        tag('h1', text(_title(view))),
        tag('p', text(facts['id']), class_='id'),
        tag('dl', *told),
        comment,
    )


def _verdict(findings: Sequence[Finding]) -> str:
    wrong = [finding for finding in findings if finding.kind is not Kind.NOTE]
    notes = [finding for finding in findings if finding.kind is Kind.NOTE]
    if wrong:
        count = '1 thing is' if len(wrong) == 1 else f'{len(wrong)} things are'
        title = tag('h2', f'{count} wrong or missing')
    else:
        title = tag('h2', 'Whole: nothing is missing')
    rows = [(each.kind.value, each.text) for each in [*wrong, *notes]]
    return tag('section', title, table(rows), class_='wrong' if wrong else 'right', id='verdict')


def _frame_line(view: View, facts: dict[str, Any]) -> str:
    timeline = facts['pose_timeline']
    if not timeline['samples']:
        return ''
    axes = 'x to the right, y up, metres' if view.knows_axes else 'axes not known'
    frame = f' in {view.frame}' if view.frame else ''
    line = f'From above{frame}, {axes}. {plural(timeline["samples"], "pose")}'
    if timeline['rate_hz']:
        line += f' at {timeline["rate_hz"]:g} Hz, longest gap {timeline["longest_gap_s"]:.2f} s'
    return tag('p', text(f'{line}.'), class_='hint')


def _events(view: View) -> str:
    rows = [
        (clock(event.time - view.start), view.event_text(event))
        for event in view.events[:_MOST_EVENTS]
    ]
    if not rows:
        return ''
    more = len(view.events) - len(rows)
    return table(rows, class_='events') + (tag('p', f'{more} more.') if more else '')


def _health(facts: dict[str, Any]) -> str:
    rows = [(name, f'{value:.12g}', _said(name, facts)) for name, value in facts['health'].items()]
    accounts = [
        (name.removeprefix('c3d.account.'), value)
        for name, value in facts['properties'].items()
        if name.startswith('c3d.account.')
    ]
    told = table(accounts, head=('input', 'what became of it')) if accounts else ''
    if not rows:
        return told
    return told + _folded('Health series, last values', table(rows))


def _said(name: str, facts: dict[str, Any]) -> str:
    from cognitive3d_ros.session.summary import UPLOAD_BLOCKED, blocked_by

    return blocked_by(facts['health'][name]) if name == UPLOAD_BLOCKED else ''


def _properties(facts: dict[str, Any]) -> str:
    rows = sorted((key, _shown(value)) for key, value in facts['properties'].items())
    return (
        _folded('1 property' if len(rows) == 1 else f'{len(rows)} properties', table(rows))
        if rows
        else ''
    )


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _folded(title: str, content: str) -> str:
    return tag('details', tag('summary', text(title)), content)
