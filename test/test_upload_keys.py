"""Where the application key comes from, and addresses."""

import pytest

from cognitive3d_ros.upload.endpoint import (
    host,
    is_loopback,
    part_url,
    remote_variables_url,
)
from cognitive3d_ros.upload.keys import VARIABLE, ApplicationKey, NoKey, without_key


def test_the_file_is_read_anew_each_time(tmp_path):
    file = tmp_path / 'key'
    key = ApplicationKey(file, {VARIABLE: 'from-the-environment'})
    assert isinstance(key(), NoKey)
    file.write_text('first\n')
    assert key() == 'first'
    file.write_bytes(b'\xef\xbb\xbf  second \r\n')
    assert key() == 'second'


def test_the_environment_where_no_file_is_named():
    environ = {}
    key = ApplicationKey(None, environ)
    assert VARIABLE in key().reason
    assert 'application_key_file' in key().reason
    environ[VARIABLE] = ' abc '
    assert key() == 'abc'
    assert ApplicationKey('', environ)() == 'abc'


def test_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    (tmp_path / 'key').write_text('abc')
    assert ApplicationKey('~/key')() == 'abc'


@pytest.mark.parametrize('content', [b'', b' \n', b'\xef\xbb\xbf'])
def test_an_empty_file_is_named(tmp_path, content):
    file = tmp_path / 'key'
    file.write_bytes(content)
    assert str(file) in ApplicationKey(file)().reason


@pytest.mark.parametrize(
    'content',
    [b'two words', b'two\nlines', 'schlüssel'.encode(), b'\xff\xfe', b'a\0b', b'x' * 10**6],
)
def test_what_is_no_key_is_named_and_not_shown(tmp_path, content):
    file = tmp_path / 'key'
    file.write_bytes(content)
    found = ApplicationKey(file)()
    assert str(file) in found.reason
    assert content.decode('utf-8', 'replace') not in found.reason


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    assert ApplicationKey(tmp_path)().reason == f'application_key_file {tmp_path}: Is a directory'
    assert 'No such file' in ApplicationKey(tmp_path / 'none')().reason
    assert isinstance(ApplicationKey('a\0b')(), NoKey)


@pytest.mark.parametrize(
    ('url', 'expected'),
    [
        ('http://127.0.0.1:8765', True),
        ('http://127.9.9.9/x', True),
        ('http://[::1]:8765', True),
        ('https://localhost', True),
        ('https://LOCALHOST:1', True),
        ('https://data.cognitive3d.com', False),
        ('http://localhost.example.com', False),
        ('http://127.0.0.1.example.com', False),
        ('http://0.0.0.0', False),
        ('http://192.168.0.1', False),
        ('http://[::1', False),
        ('', False),
    ],
)
def test_loopback(url, expected):
    assert is_loopback(url) is expected


def test_addresses():
    assert part_url('https://x/', 'gaze', 'ä/?', 2) == 'https://x/v0/gaze/%C3%A4%2F%3F?version=2'
    assert (
        remote_variables_url('https://x/base', 'a b&c=d/ü')
        == 'https://x/base/v0/remotevariables?identifier=a%20b%26c%3Dd%2F%C3%BC'
    )
    assert host('https://user:password@x:8/y') == 'x:8'
    assert 'password' not in host('https://user:password@[x')


@pytest.mark.parametrize(
    ('text', 'key', 'shown'),
    [
        ('you said 0123-abcd!', '0123-abcd', 'you said <application key>!'),
        ('x0123-abcdx 0123-abcd', '0123-abcd', 'x<application key>x <application key>'),
        ('checked: key k is no key (k)', 'k', 'checked: key <application key> is no key (<application key>)'),
        ('a k-1 k_ k', 'k', 'a k-1 k_ <application key>'),
        ('a.c abc', 'a.c', '<application key> abc'),
        ('APIKEY:DATA se$ret', 'se$ret', 'APIKEY:DATA <application key>'),
    ],
)  # fmt: skip
def test_a_key_is_blotted_out_and_a_short_one_only_where_it_is_meant(text, key, shown):
    assert without_key(text, key) == shown
