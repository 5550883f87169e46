"""A browser that is not there: said to a user, red in CI."""

import finding
import pytest


@pytest.mark.parametrize(
    ("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)], ids=["CI", "a user"]
)
def test_without_a_browser_ci_fails_and_a_user_skips(monkeypatch, ci, outcome):
    """Where no browser is found, CI is red and a user skips; both are told how to get one."""
    monkeypatch.setattr(finding, "found", lambda: iter(()))
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="apt install chromium"):
        finding.browser_path()


def test_a_named_browser_comes_first(monkeypatch):
    """CHROMIUM in the environment is taken as it stands, so that a wrong path is an error and no other browser."""
    monkeypatch.setenv("CHROMIUM", "/nowhere/chrome")
    assert finding.browser_path() == "/nowhere/chrome"


def test_a_browser_is_found_where_windows_puts_it(monkeypatch, tmp_path):
    """With none on the search path, the folders for programs are looked through."""
    monkeypatch.setattr(finding, "APPLICATIONS", ())
    monkeypatch.setenv("PATH", "")
    for name in finding.PROGRAMS:
        monkeypatch.delenv(name, raising=False)
    assert list(finding.found()) == []
    monkeypatch.setenv("ProgramFiles", str(tmp_path))
    chrome = tmp_path / "Google" / "Chrome" / "Application" / "chrome.exe"
    chrome.parent.mkdir(parents=True)
    chrome.write_bytes(b"")
    assert [path.replace("\\", "/") for path in finding.found()] == [chrome.as_posix()]
