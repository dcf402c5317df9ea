"""The folder of the compile cache: its owner, its size limit, and damaged entries."""

import json
import os
import shutil
import struct
import time

import pytest

import cudart_py as cuda
from cudart_py.compilation import cache
from cudart_py.compilation.compiler import compile_image

pytestmark = pytest.mark.usefixtures("place", "runs")
SOURCE = 'extern "C" __global__ void scale(float* x, float a) { x[threadIdx.x] *= a; }\n'


def keep(key, content=b"image", age=0):
    """Store an entry that was last used `age` seconds ago."""
    cache.store(key, {}, [content])
    if age:
        set_age(os.path.join(cache.folder(), key + ".image"), age)


def set_age(path, seconds):
    then = time.time() - seconds
    os.utime(path, (then, then))


def kept(key):
    return cache.load(key, lambda description, images: images[0])


def test_leftovers_of_killed_writers_go_after_an_hour(place, monkeypatch):
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    place.mkdir()
    for name, age in (("old.1.2.tmp", 3600.5), ("new.1.2.tmp", 3599.5), ("notes.txt", 3700)):
        (place / name).write_text("")
        set_age(place / name, age)
    keep("a")
    assert sorted(path.name for path in place.iterdir()) == ["a.image", "new.1.2.tmp", "notes.txt"]


def test_an_interrupted_write_leaves_nothing(place, monkeypatch):
    def interrupt(*paths):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        keep("a")
    assert list(place.iterdir()) == []


def test_entries_used_least_recently_go_first_until_the_others_fit(place, monkeypatch):
    keep("a", age=300)
    keep("b", age=200)
    keep("c", age=100)
    assert kept("a")
    monkeypatch.setenv(cache.SIZE_VARIABLE, str(cache.cache_info().bytes))
    keep("d")
    assert [bool(kept(key)) for key in "abcd"] == [True, False, True, True]
    keep("e", b"x" * 2000)
    assert list(place.iterdir()) == [], "it is larger than all may be together"


@pytest.mark.parametrize(("free", "count"), [(300, 2), (0, 1)])
def test_without_a_limit_given_it_is_one_gibibyte(place, monkeypatch, free, count):
    monkeypatch.delenv(cache.SIZE_VARIABLE, raising=False)
    place.mkdir()
    (place / "a.image").touch()
    os.truncate(place / "a.image", (1 << 30) - free)
    set_age(place / "a.image", 60)
    keep("b")
    assert len(list(place.iterdir())) == count


def test_a_process_that_stores_many_entries_rarely_examines_the_folder_and_keeps_the_limit(place, monkeypatch):
    examined = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: examined.append(folder) or scandir(folder))
    for number in range(50):
        keep(f"small{number}")
    assert len(examined) == 1
    monkeypatch.setenv(cache.SIZE_VARIABLE, "20000")
    for number in range(50):
        keep(f"large{number}", b"x" * 1000)
        assert cache.cache_info().bytes <= 20_000
    assert kept("large49")


def test_a_limit_of_nothing_neither_reads_nor_writes(place, monkeypatch, builds):
    compile_image(SOURCE)
    monkeypatch.setenv(cache.SIZE_VARIABLE, "0")
    compile_image(SOURCE)
    compile_image(SOURCE, define={"N": 1})
    assert len(builds) == 3
    assert len(list(place.iterdir())) == 1


@pytest.mark.parametrize("text", ["1G", "-1", "1.5"])
def test_a_limit_that_is_no_number_is_named_before_the_compile(monkeypatch, builds, text):
    monkeypatch.setenv(cache.SIZE_VARIABLE, text)
    with pytest.raises(ValueError, match=cache.SIZE_VARIABLE):
        compile_image(SOURCE)
    assert builds == []


def test_processes_that_evict_each_others_entries_never_meet_a_wrong_one(at_once, place):
    program = """
import os, random, warnings
from cudart_py.compilation import cache
warnings.simplefilter("error")
random.seed()
for _ in range(300):
    key = random.choice("abcdef")
    found = cache.load(key, lambda description, images: images[0])
    assert found in (None, key.encode() * 1000), key
    if found is None:
        cache.store(key, {}, [key.encode() * 1000])
"""
    at_once(program, 4, CUDART_PY_CACHE_SIZE="3500")
    assert sum(path.stat().st_size for path in place.iterdir()) <= 3500


def give_away(patch, call):
    """Make a system call report another user: `fstat` as a file's owner, `geteuid` as the process's own."""
    original = getattr(os, call)

    def foreign(*arguments):
        status = original(*arguments)
        return os.stat_result((*status[:4], status[4] + 1, *status[5:])) if call == "fstat" else status + 1

    patch.setattr(os, call, foreign)


def exchange_by_link(entry):
    elsewhere = entry.rename(entry.parent.parent / "elsewhere")
    entry.symlink_to(elsewhere)


OTHERS_WRITE = "other users can write to it"
SPOILT = {
    "all may write": (lambda place, patch: place.chmod(0o777), OTHERS_WRITE),
    "its group may write": (lambda place, patch: place.chmod(0o770), OTHERS_WRITE),
    "others may write": (lambda place, patch: place.chmod(0o702), OTHERS_WRITE),
    "another user's": (lambda place, patch: give_away(patch, "geteuid"), "belongs to another user"),
    "a file": (lambda place, patch: (place.rename(f"{place}.old"), place.touch()), "CUDART_PY_CACHE"),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_folder_that_cannot_be_trusted_is_not_used_and_a_process_says_so_once(place, builds, monkeypatch, what):
    spoil, words = SPOILT[what]
    compile_image(SOURCE)
    spoil(place, monkeypatch)
    with pytest.warns(cache.CacheWarning, match=words):
        compile_image(SOURCE)
    compile_image(SOURCE, define={"N": 1})
    assert len(builds) == 3


CHANGED = {
    "all may write": lambda entry, patch: entry.chmod(0o666),
    "its group may write": lambda entry, patch: entry.chmod(0o660),
    "others may write": lambda entry, patch: entry.chmod(0o602),
    "a link": lambda entry, patch: exchange_by_link(entry),
    "another user's": lambda entry, patch: give_away(patch, "fstat"),
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_an_entry_that_others_can_change_is_made_again(place, builds, monkeypatch, change):
    compile_image(SOURCE)
    change(*place.iterdir(), monkeypatch)
    compile_image(SOURCE)
    assert len(builds) == 2


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o777])
def test_entries_and_folders_are_private_whatever_the_umask(tmp_path, monkeypatch, mask):
    place = tmp_path / "new" / "newer" / "cache"
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, str(place))
    before = os.umask(mask)
    try:
        keep("a")
    finally:
        os.umask(before)
    modes = {path: path.stat().st_mode & 0o777 for path in (tmp_path / "new", tmp_path / "new" / "newer", place)}
    assert set(modes.values()) == {0o700}, modes
    assert [path.stat().st_mode & 0o777 for path in place.iterdir()] == [0o600]
    assert kept("a") == b"image"


@pytest.mark.parametrize("link", [False, True])
def test_a_folder_on_the_way_that_others_can_write_to_is_refused(tmp_path, monkeypatch, builds, link):
    """Anyone who can write to a parent folder could replace the cache by a folder of planted code."""
    way = tmp_path / "way"
    place = way / "cache"
    place.mkdir(parents=True, mode=0o700)
    way.chmod(0o777)
    if link:
        (tmp_path / "link").symlink_to(way)
        place = tmp_path / "link" / "cache"
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, str(place))
    with pytest.warns(cache.CacheWarning, match=f"other users can write to .*{place.parent.name}"):
        compile_image(SOURCE)
    assert not any(place.iterdir())
    # In a folder with the sticky bit, nobody can replace another user's files.
    way.chmod(0o1777)
    compile_image(SOURCE)
    compile_image(SOURCE)
    assert len(builds) == 2


def test_the_home_folder_of_an_unknown_user_is_refused_where_it_is_named(place, monkeypatch, builds, tmp_path):
    """Otherwise the cache would become a folder named ~nosuchuser in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, "~nosuchuser/c")
    message = "CUDART_PY_CACHE='~nosuchuser/c' begins with '~nosuchuser', .* home folder is unknown"
    for call in (lambda: compile_image(SOURCE), cache.cache_info, cache.clear_cache):
        with pytest.raises(ValueError, match=message):
            call()
    assert builds == []
    assert os.listdir() == []


def test_without_a_home_folder_nothing_is_kept(monkeypatch, builds, tmp_path):
    """Containers often run as a user who has no entry in /etc/passwd, and without HOME."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(cache.ENVIRONMENT_VARIABLE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.warns(cache.CacheWarning, match="the home folder is unknown; set CUDART_PY_CACHE"):
        compile_image(SOURCE)
    assert len(builds) == 1
    assert os.listdir() == []
    assert cache.cache_info()[:3] == ("", 0, 0)
    assert cache.clear_cache() == 0


@pytest.mark.parametrize(
    ("variable", "value"), [(cache.ENVIRONMENT_VARIABLE, "~nosuchuser/c"), (cache.SIZE_VARIABLE, "1G")]
)
@pytest.mark.parametrize("use", [lambda: kept("a"), lambda: keep("a")])
def test_a_launch_goes_on_without_a_cache(monkeypatch, variable, value, use):
    """A warning, since an exception from inside a launch would abort it."""
    monkeypatch.setenv(variable, value)
    with pytest.warns(cache.CacheWarning, match=f"{variable}='{value}'"):
        assert use() is None


def test_a_relative_folder_is_in_the_working_folder(monkeypatch, tmp_path):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, "relative/folder")
    keep("a")
    assert kept("a")
    assert os.listdir("relative/folder") == ["a.image"]
    shutil.rmtree(tmp_path / "gone")
    with pytest.raises(ValueError, match="CUDART_PY_CACHE='relative/folder' .* was deleted"):
        cache.folder()


def refuse(path):
    raise PermissionError(path)


def test_what_the_system_refuses_to_change_is_used_and_not_counted_as_cleared(place, builds, monkeypatch):
    compile_image(SOURCE)
    monkeypatch.setattr(os, "utime", refuse)
    compile_image(SOURCE)
    assert len(builds) == 1
    monkeypatch.setattr(os, "unlink", refuse)
    assert cache.clear_cache() == 0


def test_a_readable_folder_of_ones_own_is_used(place, builds):
    place.mkdir(mode=0o755)
    compile_image(SOURCE)
    compile_image(SOURCE)
    assert len(builds) == 1


@pytest.mark.parametrize("call", [lambda: compile_image(SOURCE), lambda: cuda.compile(SOURCE)])
def test_the_warning_points_at_the_caller(place, device, call):
    place.mkdir()
    place.chmod(0o777)
    with pytest.warns(cache.CacheWarning) as caught:
        call()
    assert [warning.filename for warning in caught] == [__file__]


def forged(content, change):
    """Return a cache entry whose header `change` has altered, with a checksum that matches."""
    start = len(cache._MAGIC) + cache._DIGEST_BYTES
    (length,) = struct.unpack_from("<I", content, start)
    header = json.loads(content[start + 4 : start + 4 + length])
    text = change(header) or json.dumps(header).encode()
    body = struct.pack("<I", len(text)) + text + content[start + 4 + length :]
    return cache._MAGIC + cache._digest(body) + body


def with_checksum(content, byte):
    start = len(cache._MAGIC)
    return content[:start] + bytes([byte]) * cache._DIGEST_BYTES + content[start + cache._DIGEST_BYTES :]


FORGERIES = {
    "no JSON": lambda header: b"{",
    "too deep": lambda header: b"[" * 100_000,
    "a list": lambda header: b"[]",
    "no description": lambda header: header.pop("description") and None,
    "no sizes": lambda header: header.pop("sizes") and None,
    "sizes of text": lambda header: header.update(sizes=["1"]),
    "negative sizes": lambda header: header.update(sizes=[-5, 5, 0]),
    "one image": lambda header: header.update(sizes=[sum(header["sizes"])]),
    "an image too long": lambda header: header.update(sizes=[*header["sizes"][:-1], 1]),
    "an image too short": lambda header: header.update(sizes=[*header["sizes"][:-2], 1, 0]),
    "another key": lambda header: header.update(key="0"),
    "witnesses of text": lambda header: header.update(witnesses=["abc"]),
    "signatures of numbers": lambda header: header["description"].update(signatures=[1]),
    "a parameter too many": lambda header: header["description"]["signatures"][0][2].append([1] * 20),
    "names of numbers": lambda header: header["description"].update(names=5),
    "attributes of text": lambda header: header["description"].update(attributes="abc"),
}
DAMAGES = {
    **{f"cut at {end}": lambda content, end=end: content[:end] for end in (0, 10, 40, 200, -1)},
    "another start": lambda content: b"\0" + content[1:],
    **{f"a checksum of {byte:x}": lambda content, byte=byte: with_checksum(content, byte) for byte in (0, 0xFF)},
    "a flipped bit": lambda content: content[:-100] + bytes([content[-100] ^ 1]) + content[-99:],
    **{name: lambda content, change=change: forged(content, change) for name, change in FORGERIES.items()},
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_or_forged_entry_is_made_again(place, builds, damage):
    first = compile_image(SOURCE)
    (entry,) = place.iterdir()
    entry.write_bytes(damage(entry.read_bytes()))
    assert compile_image(SOURCE).cubin == first.cubin
    compile_image(SOURCE)
    assert len(builds) == 2


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_in_the_place_of_an_entry_hangs_nothing(python, place, make):
    compile_image(SOURCE)
    (entry,) = place.iterdir()
    entry.unlink()
    make(entry)
    python(f"from cudart_py.compilation.compiler import compile_image; assert compile_image({SOURCE!r}).cubin")
