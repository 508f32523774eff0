"""The report: one page that refers to nothing outside, whatever is in the session; looked at by a browser."""

import dataclasses
import html.parser
import json
import re
import shutil
import subprocess

import cv2
import numpy as np
import pytest
import rich_session
import zstandard
from stored import (
    SESSION,
    annotation,
    at,
    body,
    cloud_record,
    event,
    frame_record,
    pose,
    whole,
    write,
    write_sensors,
)

from cognitive3d_ros import open_session
from cognitive3d_ros.cli.main import main
from cognitive3d_ros.report import make_report
from cognitive3d_ros.report.charts import _outline
from cognitive3d_ros.report.svg import clock, number, round_step, tag, text
from cognitive3d_ros.session.summary import summary

VOID = {'meta', 'img', 'br', 'hr', 'input', 'link'}


class Page(html.parser.HTMLParser):
    """A page, read strictly: every element is closed where it ought to be."""

    def __init__(self, source):
        super().__init__()
        self.open = []
        self.elements = []
        self.texts = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, name, attributes):
        self.elements.append((name, dict(attributes)))
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, name, class_=None):
        return [
            found
            for each, found in self.elements
            if each == name and (class_ is None or class_ in found.get('class', '').split())
        ]


def page_of(session):
    report = make_report(session)
    page = Page(report.page)
    page.source = report.page
    page.embedded = {
        name: json.loads(content)
        for name, content in re.findall(
            r'<script type="application/json" id="(\w+)">(.*?)</script>', report.page
        )
    }
    return page


@pytest.fixture(scope='module')
def rich(tmp_path_factory):
    root = tmp_path_factory.mktemp('rich')
    rich_session.record(root / 'spool')
    return open_session(root / 'spool')


def test_the_page_refers_to_nothing_outside(rich):
    page = page_of(rich)
    for _, attributes in page.elements:
        for name in ('src', 'href', 'action', 'data', 'poster', 'srcset'):
            assert attributes.get(name, 'data:').startswith('data:')
    assert '@import' not in page.source
    assert 'url(' not in page.source
    assert 'fetch(' not in page.source


def test_what_is_on_the_page(rich):
    page = page_of(rich)
    told = ' '.join(page.texts)
    for said in (
        'rich',
        rich.id,
        'operator-3',
        'wet floor',
        'Whole: nothing is missing',
        'From above in odom',
        'dock.reached dock=A, ok=true, depth_m=0.25',
        'battery.percentage',
        'line.0',
        'payload_kg',
        '6 received = 6 stored',
    ):
        assert said in told
    assert len(page.all('img')) == 12
    assert len(page.all('path', 'region')) == 3
    assert len(page.all('rect', 'region')) == 3
    assert len(page.all('svg', 'chart')) == 2
    assert len(page.all('path', 'path')) == 1
    assert len(page.all('path', 'seen')) == 1
    assert len(page.all('circle', 'start')) == len(page.all('circle', 'end')) == 1
    # Events in the plan (all but start and end) and along the time.
    assert len(page.all('circle', 'event')) == 8 + 10
    cursor = page.embedded['cursor']
    assert cursor['length'] == 6.0
    assert len(cursor['t']) == len(cursor['x']) == len(cursor['y']) == 61
    assert [each['name'] for each in page.embedded['clouds']] == ['top'] * 4 + ['base'] * 4


def test_the_plan_is_to_scale(rich):
    """x to the right, y up, as many pixels a metre both ways."""
    cursor = page_of(rich).embedded['cursor']
    placed = np.array([rich_session.robot_at(t)[0][:2] for t in cursor['t']])
    drawn = np.stack([cursor['x'], cursor['y']], axis=1)
    per_m = (drawn[-1] - drawn[0]) / (placed[-1] - placed[0])
    assert per_m[0] > 0
    assert per_m[1] == pytest.approx(-per_m[0], rel=0.01)
    expected = drawn[0] + (placed - placed[0]) * per_m
    np.testing.assert_allclose(drawn, expected, atol=0.2)


def test_texts_cannot_break_out_of_the_page(tmp_path):
    nasty = '</script><script>alert(1)</script>"><img src=x onerror=alert(2)>\x1b[31m\u202e&amp;'
    folder = tmp_path / SESSION
    properties = {'c3d.ros.pose_convention': 'rep103', 'c3d.sessionname': nasty, nasty: nasty}
    properties |= {'c3d.ros.comment': nasty, 'c3d.ros.reference_frame': nasty}
    properties |= {'c3d.ros.cameras': 'front', f'c3d.account.{nasty}': nasty}
    write(folder, 'gaze', 1, 'properties', body('gaze', 1, [], properties=properties))
    write(folder, 'gaze', 2, 'pose', [pose(0), pose(1, 1.0)])
    records = [
        event(nasty, 0.5, **{nasty: nasty}),
        annotation(0.5, nasty, nasty, nasty),
        annotation(0.6, 'log_marker_start', f'<1>;{nasty}'),
    ]
    write(folder, 'events', 1, 'events', records)
    series = [{'name': nasty, 'data': [[at(0.1), 1], [at(0.9), 2]]}]
    series.append({'name': f'c3d.{nasty}', 'data': [[at(0.1), 1]]})
    write(folder, 'sensors', 1, 'series', series)
    write_sensors(folder, 'camera', 1, [frame_record(0.5, 0, 'front', data=rich_session.PICTURE)])
    write_sensors(folder, 'camera', 2, [frame_record(0.5, 0, nasty[:60], data=b'no jpeg')])
    write_sensors(folder, 'lidar', 1, [cloud_record(0.5, 0, [(1, 2, 3)], lidar=nasty[:60])])
    page = page_of(open_session(folder))
    names = [name for name, _ in page.elements]
    assert names.count('script') == 3  # two of data, and the page's own
    assert not any('onerror' in attributes for _, attributes in page.elements)
    assert '\x1b' not in page.source
    assert '\u202e' not in page.source
    assert page.embedded['clouds'][0]['name'] == nasty[:60]
    assert nasty.replace('\x1b', '\\x1b').replace('\u202e', '\\u202e') in ''.join(page.texts)


def test_an_empty_session(tmp_path):
    write(tmp_path, 'events', 1, 'events', [event('c3d.sessionStart', 0)])
    page = page_of(open_session(tmp_path))
    told = ' '.join(page.texts)
    assert 'No pose was recorded.' in told
    assert 'No series was recorded.' in told
    assert '2 things are wrong or missing' in told
    assert 'gaze, poses and session properties: none is here' in told
    assert 'there is no c3d.sessionEnd' in told
    assert 'Pictures' not in told


def test_a_session_that_does_not_say_its_axes(tmp_path):
    write(tmp_path, 'gaze', 1, 'pose', [pose(0), pose(1, 3.0)])
    page = page_of(open_session(tmp_path))
    assert 'axes not known' in ' '.join(page.texts)
    cursor = page.embedded['cursor']  # (x, 0, 2x) with y up: to the right, and down
    assert cursor['x'][1] > cursor['x'][0]
    assert cursor['y'][1] > cursor['y'][0]


def test_a_robot_that_stood_still_and_a_single_pose(tmp_path):
    for count in (1, 5):
        folder = tmp_path / f'{count}'
        write(folder, 'gaze', 1, 'pose', [pose(n, 1.0) for n in range(count)])
        page = page_of(open_session(folder))
        assert len(page.all('path', 'path')) == 1


def test_what_is_damaged_is_named_and_left_out(tmp_path):
    folder = whole(tmp_path / SESSION)
    (folder / 'gaze.000002.pose.c3d').write_bytes(b'')
    record = cloud_record(1, 0, [(1, 2, 3)])
    block = zstandard.ZstdCompressor(write_content_size=False).compress(b'1234')
    broken = dataclasses.replace(record, scan=dataclasses.replace(record.scan, data=block))
    write_sensors(folder, 'lidar', 1, [broken, cloud_record(2, 1, [(1000, 0, 0)])])
    page = page_of(open_session(folder))
    told = ' '.join(page.texts)
    assert 'gaze.000002.pose.c3d: empty' in told
    assert 'lidar.000001.lidar.c3d: ' in told
    assert [each['count'] for each in page.embedded['clouds']] == [0, 1]


def test_a_picture_that_cannot_be_read_is_passed_over_and_named(tmp_path):
    folder = whole(tmp_path / SESSION)
    data = cv2.imencode('.jpg', np.zeros((48, 64), np.uint8))[1].tobytes()
    frames = [frame_record(n, n - 1, data=data) for n in (1, 2, 3)]
    for n, wrong in ((0, b''), (2, b'junk')):
        frames[n] = dataclasses.replace(frames[n], data=wrong)
    write_sensors(folder, 'camera', 1, frames)
    page = page_of(open_session(folder))
    told = 'Not shown, as they cannot be read: those at 0:01.0, 0:03.0.'
    assert told in page.texts
    assert len(page.all('img')) == 1
    assert '3 frames' in page.texts
    write_sensors(folder, 'camera', 1, frames[:1])
    assert '1 frame' in page_of(open_session(folder)).texts


def test_poses_at_no_place_are_no_part_of_the_path(tmp_path):
    write(tmp_path, 'gaze', 1, 'pose', [pose(1), pose(2, 1e300), pose(3, 2.0), pose(4, 5.0)])
    session = open_session(tmp_path)
    timeline = summary(session)['pose_timeline']
    assert (timeline['path_m'], timeline['extent_m']) == (11.18, [5.0, 0.0, 10.0])
    texts = page_of(session).texts
    assert '11.2 m' in texts
    assert 'poses: 1 at no place that can be' in ' '.join(texts)
    write(tmp_path, 'gaze', 1, 'pose', [pose(2, 1e300)])
    assert summary(open_session(tmp_path))['pose_timeline']['path_m'] == 0.0
    assert ' 1 pose.' in ' '.join(page_of(open_session(tmp_path)).texts)


def test_long_sessions_make_no_long_pages(tmp_path):
    count = 20_000
    poses = [pose(n / 10, n / 1000) for n in range(count)]
    for number_, start in enumerate(range(0, count, 5000), 1):
        write(tmp_path, 'gaze', number_, 'pose', poses[start : start + 5000])
    rng = np.random.default_rng(1)
    data = [[at(n / 10), float(v)] for n, v in enumerate(rng.normal(size=count))]
    data[777][1] = 1e3  # one peak in all of it
    write(tmp_path, 'sensors', 1, 'series', [{'name': 'noise', 'data': data}])
    report = make_report(open_session(tmp_path))
    assert len(report.page) < 300_000
    assert len(Page(report.page).all('path', 'path')[0]['d']) < 80_000


def test_no_peak_is_lost():
    rng = np.random.default_rng(2)
    values = rng.normal(size=100_000)
    values[[5, 99_998]] = (50.0, -70.0)
    x, y = _outline(np.arange(100_000) / 100.0, values)
    assert len(x) == len(y) <= 1000
    assert (y.max(), y.min()) == (50.0, -70.0)
    short_x, short_y = _outline(np.arange(3.0), np.array([1.0, 2.0, 0.0]))
    assert short_y.tolist() == [1, 2, 0]
    assert short_x.tolist() == [0, 1, 2]


def test_pieces():
    assert tag('b', 'x', class_='a', data_t=1, title=None) == '<b class="a" data-t="1">x</b>'
    assert tag('b', title='<"&') == '<b title="&lt;&quot;&amp;"></b>'
    assert text('<a>\x07\n') == '&lt;a&gt;\\x07\n'
    assert [number(x) for x in (1.0, -0.001, 2.345678, -10.5)] == ['1', '0', '2.35', '-10.5']
    assert [round_step(span, 9) for span in (9, 10, 80, 0.5, 0)] == [1, 2, 10, 0.1, 1]
    assert [clock(t) for t in (0, 5.25, 65, 3599, 3600, 90_061.9, -1)] == [
        '0:00.0',
        '0:05.2',
        '1:05.0',
        '59:59',
        '1:00:00',
        '25:01:01',
        '-0:01.0',
    ]


# The command


def run(capsys, *arguments):
    code = main(['report', *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_command(tmp_path, capsys):
    folder = whole(tmp_path / SESSION)
    out = tmp_path / 'report.html'
    code, said, err = run(capsys, folder, '-o', out)
    assert (code, err) == (0, '')
    assert re.fullmatch(rf'{re.escape(str(out))}: \d+ KB, session {SESSION}\n', said)
    assert out.read_text('utf-8').startswith('<!DOCTYPE html>')
    code, _, err = run(capsys, folder, '-o', out)
    assert code == 1
    assert 'is there already' in err
    (folder / 'gaze.000003.properties.c3d').unlink()
    code, said, _ = run(capsys, folder, '-o', out, '--force')
    assert code == 3
    assert '  missing part: gaze: part 3, the last is 4\n' in said
    code, said, _ = run(capsys, folder, '-o', out, '--force', '--json')
    assert code == 3
    facts = json.loads(said)
    assert facts['wrong'] == ['gaze: part 3, the last is 4']
    assert facts['bytes'] == out.stat().st_size
    assert sorted(p.name for p in tmp_path.iterdir()) == [SESSION, 'report.html']


def test_a_report_that_is_interrupted_leaves_nothing(tmp_path, capsys, monkeypatch):
    folder = whole(tmp_path / SESSION)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr('cognitive3d_ros.report.make_report', interrupted)
    code, _, err = run(capsys, folder, '-o', tmp_path / 'report.html')
    assert (code, err) == (1, 'c3d: interrupted\n')
    assert [p.name for p in tmp_path.iterdir()] == [SESSION]


def test_what_the_recorder_lost_is_on_the_page(tmp_path):
    folder = whole(tmp_path / SESSION)
    lost = {'c3d.losses': 'scans: 3 queue_full'}
    write(folder, 'gaze', 5, 'properties', body('gaze', 5, [], properties=lost))
    series = [{'name': 'c3d.dropped_events', 'data': [[at(5), 2]]}]
    write(folder, 'sensors', 2, 'series', series)
    told = ' '.join(page_of(open_session(folder)).texts)
    assert '2 things are wrong or missing' in told
    assert 'the recorder said: scans: 3 queue_full' in told
    assert 'c3d.dropped_events reached 2' in told


# A browser


@pytest.fixture(scope='module')
def browser():
    """Runs Chromium without a window, and without a network."""
    names = ('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable')
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip('no Chromium: apt-get install chromium')

    def start(page, work, *options):
        command = [
            program,
            '--headless',
            '--no-sandbox',
            '--disable-gpu',
            '--disable-dev-shm-usage',
        ]
        command += [
            '--hide-scrollbars',
            '--enable-logging=stderr',
            '--host-resolver-rules=MAP * ~NOTFOUND',
        ]
        command += [f'--user-data-dir={work}/profile', *options, page.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert 'CONSOLE' not in done.stderr  # what the page's script complains about
        return done.stdout

    return start


@pytest.mark.slow
def test_a_browser_shows_it(rich, tmp_path, browser):
    page = tmp_path / 'report.html'
    page.write_text(make_report(rich).page, 'utf-8')
    dom = browser(page, tmp_path, '--dump-dom')
    assert dom.count('class="mark"') == 3  # the script has run: a mark on each picture of time
    assert 'class="on"' in dom  # and has drawn the first cloud
    browser(page, tmp_path, '--window-size=1000,2400', f'--screenshot={tmp_path}/page.png')
    assert pixels(tmp_path, (37, 99, 235)) > 1000  # the path, and the series
    assert pixels(tmp_path, (217, 119, 6)) > 200  # events
    assert pixels(tmp_path, (11, 16, 23)) > 50_000  # where the points are
    assert pixels(tmp_path, (244, 246, 248)) > 20_000  # around the sections


def pixels(folder, color):
    """How many pixels of the screenshot have a colour."""
    picture = cv2.imread(str(folder / 'page.png'))[:, :, ::-1].astype(int)
    assert picture.shape[1] == 1000
    return int((np.abs(picture - color).max(axis=2) <= 6).sum())


@pytest.mark.slow
def test_a_browser_shows_it_in_the_dark(rich, tmp_path, browser):
    page = tmp_path / 'report.html'
    page.write_text(make_report(rich).page, 'utf-8')
    dark = '--blink-settings=preferredColorScheme=0'
    browser(page, tmp_path, dark, '--window-size=1000,2400', f'--screenshot={tmp_path}/page.png')
    assert pixels(tmp_path, (110, 160, 255)) > 1000  # the path, and the series
    assert pixels(tmp_path, (15, 20, 27)) > 20_000  # around the sections
    assert pixels(tmp_path, (255, 255, 255)) < 1000


@pytest.mark.slow
def test_a_browser_shows_a_session_without_a_pose(tmp_path, browser):
    folder = tmp_path / SESSION
    write(folder, 'events', 1, 'events', [event('c3d.sessionStart', 0), event('lap', 3)])
    name = 'a.series.of.a.very.long.name' * 6
    write(folder, 'sensors', 1, 'series', [{'name': name, 'data': [[at(1), 1], [at(2), 5]]}])
    page = tmp_path / 'report.html'
    measure = '<script>document.title = document.documentElement.scrollWidth</script>'
    page.write_text(make_report(open_session(folder)).page + measure, 'utf-8')
    dom = browser(page, tmp_path, '--dump-dom', '--window-size=500,900')
    assert 'No pose was recorded.' in dom
    assert '<title>500</title>' in dom  # nothing sticks out, on a small screen either
