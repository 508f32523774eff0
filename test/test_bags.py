"""Recordings of every form, whole and broken."""

from __future__ import annotations

import itertools
import shutil
import sqlite3

import pytest
import yaml
from bag_rig import FORMS, OUR_EVENT, ROS1, START, S, messages_of, write_bag
from hypothesis import given, settings
from hypothesis import strategies as st
from rosbags import rosbag1
from rosbags.rosbag2 import StoragePlugin

from cognitive3d_ros.bags import open_bag
from cognitive3d_ros.errors import BagError, FormatError


def chatter(form, count, *, size=10, step_ns=S // 10):
    """Return that many messages on two topics, numbered."""
    make = messages_of(form)
    return [
        (f'/chat{n % 2}', START + n * step_ns, make.string(f'{n} '.ljust(size, '.')))
        for n in range(count)
    ]


def numbers(bag):
    """Return the numbers of the messages of ``chatter`` that a recording gives."""
    return [int(message.message.data.split()[0]) for message in bag.messages()]


@pytest.mark.parametrize('form', FORMS)
def test_every_form_gives_the_same_messages(tmp_path, form) -> None:
    path = write_bag(tmp_path, form, chatter(form, 40))
    with open_bag(path) as bag:
        assert bag.problems == []
        assert bag.facts.name == path.name
        assert (bag.facts.start_ns, bag.facts.end_ns) == (START, START + 39 * S // 10)
        assert bag.facts.message_count == 40
        assert bag.facts.topics == {
            '/chat0': 'std_msgs/msg/String',
            '/chat1': 'std_msgs/msg/String',
        }
        got = list(bag.messages())
        assert [message.receive_ns for message in got] == [START + n * S // 10 for n in range(40)]
        assert [message.topic for message in got] == ['/chat0', '/chat1'] * 20
        assert got[7].msgtype == 'std_msgs/msg/String'
        assert numbers(bag) == list(range(40))
        odd = list(bag.messages({'/chat1'}))
        assert [int(message.message.data.split()[0]) for message in odd] == list(range(1, 40, 2))
        assert list(bag.messages(())) == []


@pytest.mark.parametrize('form', ['sqlite3', 'mcap', 'mcap chunks'])
def test_a_single_file_of_a_folder(tmp_path, form) -> None:
    folder = write_bag(tmp_path, form, chatter(form, 10))
    (file,) = (path for path in folder.iterdir() if path.suffix in ('.db3', '.mcap'))
    with open_bag(file) as bag:
        assert numbers(bag) == list(range(10))


def test_content_tells_what_a_file_is(tmp_path) -> None:
    path = write_bag(tmp_path, 'rosbag1', chatter('rosbag1', 3))
    with open_bag(path.rename(tmp_path / 'run.bag.active')) as bag:
        assert numbers(bag) == [0, 1, 2]


def test_receive_times_order_the_messages(tmp_path) -> None:
    content = chatter('mcap', 30)
    shuffled = [content[n] for n in (4, 1, 3, 0, 2, *range(29, 4, -1))]
    for form in ('mcap', 'sqlite3'):
        folder = tmp_path / form
        folder.mkdir()
        with open_bag(write_bag(folder, form, shuffled)) as bag:
            assert numbers(bag) == list(range(30))


@pytest.mark.parametrize('plugin', [StoragePlugin.SQLITE3, StoragePlugin.MCAP])
def test_several_files_are_one_recording(tmp_path, plugin) -> None:
    form = 'mcap' if plugin is StoragePlugin.MCAP else 'sqlite3'
    content = chatter(form, 33)
    whole = tmp_path / 'whole'
    whole.mkdir()
    suffix = 'mcap' if plugin is StoragePlugin.MCAP else 'db3'
    for index in range(11):  # more than ten: run_10 comes after run_2
        folder = tmp_path / f'{index}'
        folder.mkdir()
        path = write_bag(folder, form, content[index * 3 : index * 3 + 3])
        shutil.move(path / f'run.{suffix}', whole / f'run_{index}.{suffix}')
    with open_bag(whole) as bag:
        (problem,) = bag.problems
        assert problem == (
            'metadata.yaml cannot be read (No such file or directory); its 11 files are read in the '
            'order of their numbers'
        )
        assert bag.facts.message_count == 33
        assert numbers(bag) == list(range(33))


def test_a_file_that_metadata_names_is_missing(tmp_path) -> None:
    path = write_bag(tmp_path, 'mcap', chatter('mcap', 3))
    metadata = path / 'metadata.yaml'
    said = yaml.safe_load(metadata.read_text())
    said['rosbag2_bagfile_information']['relative_file_paths'].append('run_7.mcap')
    metadata.write_text(yaml.safe_dump(said))
    with open_bag(path) as bag:
        assert bag.problems == ['run_7.mcap of run is missing']
        assert numbers(bag) == [0, 1, 2]
    (path / 'run.mcap').unlink()
    with pytest.raises(BagError, match='holds none of the files'):
        open_bag(path)


def test_the_distro_is_told_where_it_is_noted_down(tmp_path) -> None:
    path = write_bag(tmp_path, 'mcap', chatter('mcap', 3))
    metadata = path / 'metadata.yaml'
    noted = next(line for line in metadata.read_text().splitlines() if 'ros_distro' in line)
    assert noted == '  ros_distro: rosbags'
    with open_bag(path) as bag:
        assert bag.facts.distro == 'rosbags'
    with open_bag(path / 'run.mcap') as bag:  # from the file's own notes
        assert bag.facts.distro == 'rosbags'
    metadata.write_text(metadata.read_text().replace(noted, '  ros_distro: jazzy'))
    with open_bag(path) as bag:
        assert bag.facts.distro == 'jazzy'


# Cut short


@pytest.fixture(
    scope='module', params=['rosbag1', 'rosbag1 bz2', 'rosbag1 lz4', 'mcap', 'mcap chunks']
)
def long(request, tmp_path_factory):
    """A recording of several chunks: form, bytes, how many messages."""
    form, count = request.param, 60
    content = chatter(form, count, size=60_000)
    path = write_bag(tmp_path_factory.mktemp('long'), form, content, chunk_bytes=200_000)
    return form, (path if path.is_file() else path / 'run.mcap').read_bytes(), count


@settings(max_examples=25)
@given(part=st.floats(0.0, 1.0))
def test_a_file_cut_anywhere_gives_what_was_written_before(long, tmp_path_factory, part) -> None:
    form, data, count = long
    cut = int(part * len(data))
    path = tmp_path_factory.mktemp('cut') / 'cut'
    path.write_bytes(data[:cut])
    try:
        bag = open_bag(path)
    except BagError:
        got = []
    else:
        with bag:
            if cut < len(data):
                (problem,) = bag.problems
                assert problem.startswith('cut is not whole: ')
                assert problem.endswith(f'; {bag.facts.message_count} messages of it can be read')
            got = numbers(bag)
            assert len(got) == bag.facts.message_count
    assert got == list(range(len(got)))
    # What a chunk holds comes as a whole, but out of those that are not compressed.
    chunk = 1_200_000 if form.startswith('mcap') else 60_000 if form == 'rosbag1' else 260_000
    size = 60_000 if form in ('rosbag1', 'mcap') else None
    if size is not None:
        assert len(got) * size >= min(cut, count * size) - chunk - 20_000


def test_a_recorder_that_was_killed_leaves_a_bag_without_an_index(tmp_path) -> None:
    path = write_bag(tmp_path, 'rosbag1', chatter('rosbag1', 50, size=5000), chunk_bytes=50_000)
    data = bytearray(path.read_bytes())
    # The header of a bag that is being recorded: index_pos, conn_count and chunk_count are 0.
    for name in (b'index_pos=', b'conn_count=', b'chunk_count='):
        at = data.index(name) + len(name)
        size = 8 if name == b'index_pos=' else 4
        data[at : at + size] = bytes(size)
    path.write_bytes(data)
    with open_bag(path) as bag:
        (problem,) = bag.problems
        assert problem == (
            'run.bag is not whole: Bag is not indexed, reindex before reading; 50 messages of it can '
            'be read'
        )
        assert numbers(bag) == list(range(50))


def test_a_database_with_broken_pages(tmp_path) -> None:
    path = write_bag(tmp_path, 'sqlite3', chatter('sqlite3', 200, size=2000)) / 'run.db3'
    data = bytearray(path.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    path.write_bytes(data)
    with open_bag(path) as bag:
        assert len(bag.problems) == 1
        assert bag.problems[0].startswith('run.db3 is not whole: ')
        got = numbers(bag)
    # One row a page; where a page is broken SQLite stops, or passes over it, by its version.
    assert got == sorted(set(got))
    assert len(got) > 80


def test_a_database_that_was_not_closed(tmp_path) -> None:
    path = write_bag(tmp_path, 'sqlite3', chatter('sqlite3', 5)) / 'run.db3'
    connection = sqlite3.connect(path)
    connection.execute('PRAGMA journal_mode=WAL')
    connection.execute('INSERT INTO messages VALUES (6, 1, 7, ?)', (b'later',))
    connection.commit()
    with open_bag(path) as bag:
        (problem,) = bag.problems
        assert 'the messages in run.db3-wal are left out' in problem
        assert numbers(bag) == [0, 1, 2, 3, 4]
    connection.close()


def chunk_of(data, form, number):
    """Return where a chunk of a recording lies: that of its record, of its data, and its end."""
    places = []
    if form.startswith('rosbag1'):
        at = len(b'#ROSBAG V2.0\n')
        while at < len(data):
            header = int.from_bytes(data[at : at + 4], 'little')
            body = at + 4 + header + 4
            end = body + int.from_bytes(data[body - 4 : body], 'little')
            if b'op=\x05' in data[at:body]:
                places.append((at, body, end))
            at = end
    else:
        at = 8
        while data[at] != 0x0F:  # the end of the data
            end = at + 9 + int.from_bytes(data[at + 1 : at + 9], 'little')
            if data[at] == 0x06:
                places.append(
                    (at, at + 9 + 40 + int.from_bytes(data[at + 37 : at + 41], 'little'), end)
                )
            at = end
    return places[number]


@pytest.mark.parametrize('index', ['its index', 'none'])
@pytest.mark.parametrize('form', ['rosbag1 bz2', 'rosbag1 lz4', 'mcap', 'mcap chunks'])
def test_a_damaged_chunk_costs_its_own_messages_only(tmp_path, form, index) -> None:
    path = write_bag(tmp_path, form, chatter(form, 60, size=60_000), chunk_bytes=200_000)
    path = path if path.is_file() else path / 'run.mcap'
    data = bytearray(path.read_bytes())
    at, body, _ = chunk_of(data, form, 1)
    # Of a chunk that is not compressed, the length of its first message; the rest of it then means nothing.
    harmed = range(body + 1, body + 9) if form == 'mcap' else range(body + 10, body + 30)
    for place in harmed:
        data[place] ^= 0xFF
    if index == 'none':
        del data[-40:]
    path.write_bytes(data)
    with open_bag(path) as bag:
        got = numbers(bag)
        assert numbers(bag) == got  # however often it is read
        assert len(list(bag.messages({'/chat1'}))) in (len(got) // 2, (len(got) + 1) // 2)
        *cut, damage = bag.problems
    assert damage.startswith(
        f'{path.name} is damaged: 1 chunk cannot be read, the first at byte {at} ('
    )
    assert len(cut) == (index == 'none')
    lost = sorted(set(range(60)) - set(got))
    assert got == sorted(got)
    assert 0 < len(lost) < 30
    assert lost == list(range(lost[0], lost[-1] + 1))
    assert lost[0] > 0
    assert lost[-1] < 59


@pytest.mark.parametrize('index', ['its index', 'none'])
def test_damage_in_a_chunk_that_is_not_compressed(tmp_path, index) -> None:
    path = write_bag(tmp_path, 'rosbag1', chatter('rosbag1', 60, size=60_000), chunk_bytes=200_000)
    data = bytearray(path.read_bytes())
    at = data.index(b'20 ...')
    for place in range(at - 40, at - 20):  # the header of that message
        data[place] ^= 0xFF
    if index == 'none':
        del data[-40:]
    path.write_bytes(data)
    with open_bag(path) as bag:
        got = numbers(bag)
        damage = bag.problems[-1]
    assert damage.startswith(
        'run.bag is damaged: 1 message cannot be read, the first in the chunk at byte '
    )
    # With the index the next message is found; without, the next chunk.
    lost = sorted(set(range(60)) - set(got))
    assert lost == ([20] if index == 'its index' else list(range(20, lost[-1] + 1)))
    assert len(lost) <= 4


@pytest.mark.parametrize('number', [0, 2])
def test_a_bag_goes_on_after_a_record_that_is_none(tmp_path, number) -> None:
    path = write_bag(
        tmp_path, 'rosbag1 lz4', chatter('rosbag1', 60, size=60_000), chunk_bytes=200_000
    )
    data = bytearray(path.read_bytes())
    at, _, _ = chunk_of(data, 'rosbag1 lz4', number)
    data[at : at + 20] = b'\xff' * 20
    path.write_bytes(data)
    with open_bag(path) as bag:
        got = numbers(bag)
        assert bag.facts.message_count == len(got)
        whole, damage = bag.problems
    assert whole.startswith('run.bag is not whole: ')
    assert damage.startswith(f'run.bag is damaged: 1 chunk cannot be read, the first at byte {at}')
    assert 40 < len(got) < 60
    assert 59 in got


def test_a_message_that_cannot_be_decompressed_costs_itself(tmp_path) -> None:
    path = write_bag(tmp_path, 'sqlite3 message', chatter('sqlite3', 9))
    (file,) = path.glob('*.db3')
    connection = sqlite3.connect(file)
    connection.execute('UPDATE messages SET data = ? WHERE id = 4', (b'no zstd',))
    connection.commit()
    connection.close()
    with open_bag(path) as bag:
        messages = list(bag.messages())
        assert len(messages) == 9
        with pytest.raises(FormatError, match='cannot be decompressed'):
            assert messages[3].message
        assert messages[4].message.data.startswith('4')
        assert bag.problems == []


# No recordings


def test_what_is_no_recording_is_named(tmp_path) -> None:
    def refused(path):
        with pytest.raises(BagError) as raised:
            open_bag(path)
        return str(raised.value)

    missing = tmp_path / 'missing.bag'
    assert refused(missing) == f'{missing} cannot be read: No such file or directory'
    empty = tmp_path / 'empty.bag'
    empty.touch()
    assert refused(empty) == f'{empty} is empty'
    text = tmp_path / 'text.bag'
    text.write_text('No bag at all')
    assert refused(text) == (
        f"{text} begins with b'No bag at all': it is no ROS 1 bag, no MCAP file and no SQLite database"
    )
    folder = tmp_path / 'folder'
    folder.mkdir()
    assert refused(folder).startswith(
        f'{folder} is no rosbag2 folder: it holds no .mcap or .db3 file'
    )
    old = tmp_path / 'old.bag'
    old.write_bytes(b'#ROSBAG V1.2\n' + bytes(100))
    assert 'only version 2.0 of ROS 1 bags is read' in refused(old)
    other = tmp_path / 'other.mcap'
    other.write_bytes(b'\x89MCAP0\r\n\x01\x0c\0\0\0\0\0\0\0\x04\0\0\0ros1\0\0\0\0')
    assert 'Profile is not ros2' in refused(other)
    assert "its profile is b'ros1', not ros2" in refused(other)
    for form in ('rosbag1', 'mcap', 'sqlite3'):
        nothing = tmp_path / f'nothing {form}'
        nothing.mkdir()
        assert 'holds no messages' in refused(write_bag(nothing, form, []))


@given(
    data=st.binary(max_size=400), magic=st.sampled_from([b'#ROSBAG V2.0\n', b'\x89MCAP0\r\n', b''])
)
def test_whatever_a_file_holds_it_is_refused_in_one_way(tmp_path_factory, data, magic) -> None:
    path = tmp_path_factory.mktemp('any') / 'any.bag'
    path.write_bytes(magic + data)
    with pytest.raises(BagError):
        open_bag(path)


# Messages


@pytest.mark.parametrize('form', ['rosbag1', 'mcap'])
def test_bytes_that_are_no_such_message(tmp_path, form) -> None:
    content = chatter(form, 3)
    content.insert(1, ('/chat0', START + 1, b'\0\1\0\0\xff\xff\xff\x7f', 'std_msgs/msg/String'))
    with open_bag(write_bag(tmp_path, form, content)) as bag:
        first, broken, *rest = bag.messages()
        assert first.message.data.startswith('0')
        with pytest.raises(FormatError, match='8 bytes on /chat0 are no std_msgs/msg/String: '):
            broken.message  # noqa: B018
        assert [message.message.data[0] for message in rest] == ['1', '2']


def test_types_are_those_that_the_recording_defines(tmp_path) -> None:
    content = [('/events', START, messages_of('mcap').event('ping', '{}', 5 * S))]
    with open_bag(write_bag(tmp_path, 'mcap', content)) as bag:
        (message,) = bag.messages()
        assert (message.message.name, message.message.header.stamp.sec) == ('ping', 5)


def undefine(path) -> None:
    """Make a database as recorders before Iron left it: without definitions."""
    connection = sqlite3.connect(path)
    connection.execute('DELETE FROM message_definitions')
    connection.commit()
    connection.close()


def test_without_definitions_the_distros_types_are_taken_and_ours(tmp_path) -> None:
    make = messages_of('sqlite3')
    content = [('/events', START, make.event('ping')), *chatter('sqlite3', 3)[1:]]
    path = write_bag(tmp_path, 'sqlite3', content)
    undefine(path / 'run.db3')
    with open_bag(path) as bag:
        event, *chat = bag.messages()
        assert (event.msgtype, event.message.name) == (OUR_EVENT, 'ping')
        assert [message.message.data[0] for message in chat] == ['1', '2']


def test_a_type_that_nobody_knows_costs_its_own_messages_only(tmp_path) -> None:
    path = write_bag(tmp_path, 'sqlite3', chatter('sqlite3', 4)) / 'run.db3'
    connection = sqlite3.connect(path)
    connection.execute('UPDATE topics SET type = "their_msgs/msg/Thing" WHERE name = "/chat1"')
    connection.commit()
    connection.close()
    undefine(path)
    with open_bag(path) as bag:
        for index, message in enumerate(bag.messages()):
            if message.topic == '/chat1':
                with pytest.raises(FormatError, match='their_msgs/msg/Thing'):
                    message.message  # noqa: B018
            else:
                assert message.message.data[0] == str(index)


@pytest.mark.parametrize('cut', [0, 1])
def test_ros_1_notes_down_who_published(tmp_path, cut) -> None:
    path = tmp_path / 'run.bag'
    message = ROS1.serialize_ros1(messages_of('rosbag1').string('0'), 'std_msgs/msg/String')
    with rosbag1.Writer(path) as writer:
        for node in ('/talker', '/second'):
            chat = writer.add_connection(
                '/chat', 'std_msgs/msg/String', typestore=ROS1, callerid=node
            )
            writer.write(chat, START, message)
    path.write_bytes(path.read_bytes()[: -1 if cut else None])
    with open_bag(path) as bag:
        assert bag.facts.publishers == {'/chat': '/second,/talker'}
        assert len(list(bag.messages())) == 2


def test_topics_of_ros_1_without_a_slash(tmp_path) -> None:
    content = [('chat', START, messages_of('rosbag1').string('0'))]
    with open_bag(write_bag(tmp_path, 'rosbag1', content)) as bag:
        assert list(bag.facts.topics) == ['/chat']
        assert [message.topic for message in bag.messages({'/chat'})] == ['/chat']


# Real ones


def test_the_husky_recording(shared_data) -> None:
    with open_bag(shared_data / 'husky_outdoor.bag') as bag:
        assert bag.facts.message_count == 16_806
        assert bag.facts.topics == {
            '/imu/data': 'sensor_msgs/msg/Imu',
            '/husky_velocity_controller/odom': 'nav_msgs/msg/Odometry',
            '/fix': 'sensor_msgs/msg/NavSatFix',
        }
        times = [message.receive_ns for message in bag.messages()]
    assert len(times) == 16_806
    assert all(a <= b for a, b in itertools.pairwise(times))
