"""What is asked of the C library."""

import ctypes
import subprocess
import sys

import pytest

from cognitive3d_ros import memory

HOLES = """
from pathlib import Path
from cognitive3d_ros.memory import give_freed_memory_back, keep_freed_memory

def mb():
    return int(Path('/proc/self/status').read_text().partition('RssAnon:')[2].split()[0]) / 1024

keep_freed_memory()
before = mb()
pictures = [bytes(b'x' * 200_000) for _ in range(200)]
kept = pictures[::20] + pictures[-1:]  # so that what is free lies between what is not
del pictures
print(mb() - before)
give_freed_memory_back()
print(mb() - before)
"""

POOLS = """
import ctypes
from concurrent.futures import ThreadPoolExecutor
from cognitive3d_ros.memory import keep_freed_memory

keep_freed_memory()
with ThreadPoolExecutor(4) as threads:
    list(threads.map(lambda _: bytes(b'x' * 200_000), range(40)))
    libc = ctypes.CDLL(None)
    libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, 'stdout'))
"""
glibc = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), 'malloc_trim'), reason='no glibc')


@glibc
def test_what_is_free_between_what_is_not_goes_back_to_the_system():
    run = subprocess.run([sys.executable, '-c', HOLES], capture_output=True, text=True, check=True)
    kept_mb, left_mb = map(float, run.stdout.split())
    assert kept_mb > 30
    assert left_mb < 5


@glibc
def test_threads_share_one_pool():
    run = subprocess.run([sys.executable, '-c', POOLS], capture_output=True, text=True, check=True)
    assert run.stdout.count('<heap nr=') == 1


def test_another_c_library_is_left_as_it_is(monkeypatch):
    asked = []
    monkeypatch.setattr(memory, '_of_libc', asked.append)  # has neither
    memory.keep_freed_memory()
    memory.give_freed_memory_back()
    assert asked == ['mallopt', 'malloc_trim']


def test_a_function_that_the_c_library_does_not_have_is_none():
    assert memory._of_libc('c3d_no_such_function') is None
