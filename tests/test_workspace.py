"""The one folder: what a path means, and that bytes get to the disk whole."""

import os
import stat
import sys

import pytest
from helpers import tree_hash
from hypothesis import given
from hypothesis import strategies as st

from labkit import Workspace, WorkspaceError

posix = pytest.mark.skipif(sys.platform == "win32", reason="links and modes")


def test_a_workspace_must_exist(tmp_path):
    """A folder that is not there, or is a file, is the programmer's error, said with what to do."""
    (tmp_path / "file").touch()
    for place in (tmp_path / "nowhere", tmp_path / "file"):
        with pytest.raises(WorkspaceError, match="make it first"):
            Workspace(place)


def test_a_relative_workspace_stays_where_it_was(tmp_path, monkeypatch):
    """The folder is found once: a later change of the current folder moves nothing."""
    monkeypatch.chdir(tmp_path)
    workspace = Workspace(".")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    workspace.write("a.txt", b"x")
    assert (tmp_path / "a.txt").read_bytes() == b"x"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("a\0b", "NUL"),
        ("", "empty"),
        (" \t", "empty"),
        ("deep/" * 2000 + "x", "too long"),
        ("~/x", "'~'"),
        ("~user", "'~'"),
        ("/etc/passwd", "absolute"),
        ("//x", "absolute"),
        ("../x", "'..'"),
        ("a/../b", "'..'"),
        ("a/..", "'..'"),
    ],
)
def test_a_path_that_is_refused_says_why(path, why, tmp_path):
    """Each refusal has a reason that a model can act on, and names no folder of this machine."""
    with pytest.raises(WorkspaceError, match=why) as caught:
        Workspace(tmp_path).locate(path)
    assert str(tmp_path) not in str(caught.value)


@posix
def test_a_link_that_leaves_is_refused_by_where_it_leads(tmp_path):
    """A link is judged by its end: one that leaves and comes back is inside, one that does not is outside."""
    inside = tmp_path / "ws"
    inside.mkdir()
    (tmp_path / "back").symlink_to(inside)
    (inside / "round").symlink_to(tmp_path / "back")
    (inside / "out").symlink_to(tmp_path)
    workspace = Workspace(inside)
    assert workspace.locate("round/a.txt") == workspace.root / "a.txt"
    with pytest.raises(WorkspaceError, match="link that leads out"):
        workspace.locate("out/a.txt")


@given(st.text(max_size=30))
def test_any_text_is_a_place_inside_or_a_refusal(folder, path):
    """For any text as a path there is a place inside, or a WorkspaceError, and no other exception."""
    workspace = Workspace(folder)
    try:
        place = workspace.locate(path)
    except WorkspaceError:
        return
    assert place.is_relative_to(workspace.root)


@pytest.mark.parametrize("name", ["x" * 300, "/".join(["x" * 4] * 2000)])
def test_a_path_too_long_is_a_refusal_or_the_systems(name, tmp_path):
    """A name that no disk takes raises what a tool can say, and leaves nothing behind."""
    workspace = Workspace(tmp_path)
    for use in (lambda: workspace.read(name), lambda: workspace.write(name, b"x")):
        with pytest.raises((WorkspaceError, OSError)):
            use()
    assert not list(tmp_path.rglob("*x*"))


@given(st.binary(max_size=200), st.sampled_from(["a.txt", "new/b.txt", "文 件/c.bin", "a/b/c/d"]))
def test_what_is_written_is_read_back(tmp_path_factory, data, path):
    """For any bytes: written whole, read back the same, nothing else beside them."""
    folder = tmp_path_factory.mktemp("ws")
    workspace = Workspace(folder)
    workspace.write(path, b"before")
    workspace.write(path, data)
    assert workspace.read(path) == (data, len(data))
    assert workspace.read(path, 3) == (data[:3], len(data))
    assert [one.relative_to(folder).as_posix() for one in folder.rglob("*") if one.is_file()] == [path]


@pytest.mark.parametrize("fails", ["write", "replace"])
def test_a_write_that_fails_leaves_the_old_bytes_and_no_scrap(fails, tmp_path, monkeypatch):
    """Whichever act of a write fails (here made to fail; tests of faults use real limits), the folder is as before."""
    (tmp_path / "a.txt").write_bytes(b"old")
    workspace, before = Workspace(tmp_path), tree_hash(tmp_path)

    def broken(*given, **options):
        raise OSError(28, "No space left on device")

    if fails == "replace":
        monkeypatch.setattr(os, "replace", broken)
        data = b"new"
    else:
        data = "no bytes"
    with pytest.raises((OSError, TypeError)):
        workspace.write("a.txt", data)
    with pytest.raises((OSError, TypeError)):
        workspace.write("new.txt", data)
    assert tree_hash(tmp_path) == before


@posix
def test_a_file_keeps_its_mode_and_a_new_one_follows_the_umask(tmp_path):
    """A script stays executable when it is rewritten; a new file is as any other program would make it."""
    (tmp_path / "run.sh").write_bytes(b"old")
    (tmp_path / "run.sh").chmod(0o750)
    workspace = Workspace(tmp_path)
    workspace.write("run.sh", b"new")
    workspace.write("new.txt", b"new")
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "run.sh").stat().st_mode) == 0o750
    assert stat.S_IMODE((tmp_path / "new.txt").stat().st_mode) == 0o666 & ~umask


@posix
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts open files where the system lists them")
def test_no_way_through_leaves_a_file_open(tmp_path):
    """Whatever is refused or done, no descriptor stays open."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_bytes(b"x")
    os.mkfifo(tmp_path / "pipe")
    workspace = Workspace(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    for path in ("a.txt", "sub", "pipe", "nowhere", "no/where", "a.txt/b", ".", "sub/new", "x" * 300):
        for use in (
            lambda path=path: workspace.read(path),
            lambda path=path: workspace.write(path, b"x"),
            lambda path=path: workspace.entries(workspace.locate(path)),
        ):
            try:
                use()
            except (OSError, WorkspaceError):
                continue
    assert len(os.listdir("/proc/self/fd")) == before


@posix
def test_entries_tell_folders_and_plain_files_and_take_a_link_for_neither(tmp_path):
    """What is in a folder: each name once, a link neither a folder nor a file, wherever it leads."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").touch()
    (tmp_path / "to file").symlink_to("a.txt")
    (tmp_path / "to folder").symlink_to("sub")
    os.mkfifo(tmp_path / "pipe")
    workspace = Workspace(tmp_path)
    assert sorted(workspace.entries(workspace.root)) == [
        ("a.txt", False, True),
        ("pipe", False, False),
        ("sub", True, False),
        ("to file", False, False),
        ("to folder", False, False),
    ]
