"""Session cookies: what they hold, how long they hold, and what ends them."""

from __future__ import annotations

import datetime
import pathlib

import pytest
from cryptography.fernet import Fernet
from hypothesis import given, settings
from hypothesis import strategies as st

from htrflow_status.results.accounts import Account, derived
from htrflow_status.results.session import Session, Sessions
from htrflow_status.results.session_keys import SessionKeys

_ACCOUNT = Account("reader-key", "reader-key", "a-very-secret-secret")
_NOW = 1_800_000_000
_HOUR = 3600


def _sessions(file: pathlib.Path | None = None, *, secure: bool = True) -> Sessions:
    idle, longest = datetime.timedelta(hours=12), datetime.timedelta(days=7)
    return Sessions(SessionKeys(file), secure=secure, idle=idle, longest=longest)


def _sealed(sessions: Sessions, session: Session, now: float = _NOW) -> str:
    value = sessions.sealed(session, now)
    assert value is not None
    return value


def _write(file: pathlib.Path, *keys: bytes) -> None:
    """Replaces a file as the kubelet replaces that of a Secret."""
    other = file.with_suffix(".new")
    other.write_bytes(b"\n".join(keys))
    other.replace(file)


def test_a_cookie_gives_back_the_account_it_was_made_of_and_shows_nothing_of_it() -> None:
    sessions = _sessions()
    session = sessions.begin(_ACCOUNT, _NOW)

    value = _sealed(sessions, session)
    found = sessions.opened(value, _NOW + 5)

    assert found == session
    assert found.account == _ACCOUNT
    assert all(text not in value for text in (_ACCOUNT.secret, _ACCOUNT.access, session.id))
    assert all(text not in repr(session) for text in (_ACCOUNT.secret, session.id))


def test_a_login_always_makes_another_session() -> None:
    sessions = _sessions()

    assert len({sessions.begin(_ACCOUNT, _NOW).id for _ in range(50)}) == 50


def test_a_cookie_changed_in_any_place_is_no_session() -> None:
    sessions = _sessions()
    value = _sealed(sessions, sessions.begin(_ACCOUNT, _NOW))

    for at in range(len(value) - 4):  # Base64's last digits have bits that mean nothing
        changed = value[:at] + ("A" if value[at] != "A" else "B") + value[at + 1 :]
        assert sessions.opened(changed, _NOW) is None


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_text_is_no_session_and_no_error(text: str) -> None:
    assert _sessions().opened(text) is None


@pytest.mark.parametrize(
    "content", [b"", b"null", b"[]", b"{}", b'["htrflow results 1"]', b'["htrflow results 1", 1, 2, 3, 4, 5]', b"\xff"]
)
def test_what_another_program_encrypted_with_the_key_is_no_session(tmp_path: pathlib.Path, content: bytes) -> None:
    key = Fernet.generate_key()
    _write(tmp_path / "keys", key)

    assert _sessions(tmp_path / "keys").opened(Fernet(key).encrypt(content).decode()) is None


def test_a_session_ends_when_it_is_not_used() -> None:
    sessions = _sessions()
    value = _sealed(sessions, sessions.begin(_ACCOUNT, _NOW))

    assert sessions.opened(value, _NOW + 12 * _HOUR) is not None
    assert sessions.opened(value, _NOW + 12 * _HOUR + 1) is None


def test_a_session_that_is_used_goes_on_until_its_longest_age() -> None:
    sessions = _sessions()
    session, now, renewed = sessions.begin(_ACCOUNT, _NOW), _NOW, 0
    value = _sealed(sessions, session)

    while found := sessions.opened(value, now):
        assert (found.id, found.began) == (session.id, session.began)
        if sessions.due(found, now):
            value, renewed = _sealed(sessions, found, now), renewed + 1
        now += _HOUR // 2

    assert now - _NOW == 7 * 24 * _HOUR
    assert renewed == 7 * 24 - 1


def test_a_cookie_of_the_future_is_no_session() -> None:
    sessions = _sessions()
    value = _sealed(sessions, sessions.begin(_ACCOUNT, _NOW), _NOW + _HOUR)

    assert sessions.opened(value, _NOW) is None


def test_an_older_key_opens_cookies_until_it_is_removed(tmp_path: pathlib.Path) -> None:
    old, new = Fernet.generate_key(), Fernet.generate_key()
    file = tmp_path / "keys"
    _write(file, old)
    sessions = _sessions(file)
    stolen = _sealed(sessions, sessions.begin(_ACCOUNT, _NOW))

    _write(file, new, old)
    found = sessions.opened(stolen, _NOW)
    assert found is not None
    assert not found.current
    assert sessions.due(found, _NOW)
    renewed = _sealed(sessions, found)

    _write(file, new)
    assert sessions.opened(stolen, _NOW) is None
    kept = sessions.opened(renewed, _NOW)
    assert kept is not None
    assert kept.current
    assert not sessions.due(kept, _NOW)


@pytest.mark.parametrize("content", [b"", b"no key", b"\xff\xfe", None])
def test_no_session_holds_while_the_keys_cannot_be_read(
    tmp_path: pathlib.Path, content: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    key, file = Fernet.generate_key(), tmp_path / "keys"
    _write(file, key)
    sessions = _sessions(file)
    session = sessions.begin(_ACCOUNT, _NOW)
    value = _sealed(sessions, session)

    if content is None:
        file.unlink()
    else:
        _write(file, content)
    assert sessions.opened(value, _NOW) is None
    assert sessions.sealed(session, _NOW) is None
    assert sessions.cookie(session, _NOW) is None
    assert [record.levelname for record in caplog.records] == ["ERROR"]

    _write(file, key)
    assert sessions.opened(value, _NOW) is not None


def test_two_processes_with_the_same_keys_know_each_others_sessions(tmp_path: pathlib.Path) -> None:
    _write(tmp_path / "keys", Fernet.generate_key())
    one, other = _sessions(tmp_path / "keys"), _sessions(tmp_path / "keys")
    session = one.begin(_ACCOUNT, _NOW)

    assert other.opened(_sealed(one, session), _NOW) == session


def test_a_session_that_was_ended_does_not_come_back() -> None:
    sessions = _sessions()
    session = sessions.begin(_ACCOUNT, _NOW)
    value = _sealed(sessions, session)

    sessions.end(session)

    assert sessions.opened(value, _NOW) is None


def test_the_cookie_at_https_is_bound_to_the_host_and_at_http_it_works_too() -> None:
    for secure, name in ((True, "__Host-htrflow-session"), (False, "htrflow-session")):
        sessions = _sessions(secure=secure)
        cookie = sessions.cookie(sessions.begin(_ACCOUNT, _NOW), _NOW)
        assert cookie is not None
        first, *attributes = cookie.split("; ")

        assert first.startswith(f"{name}=gAAAA")
        wanted = {"HttpOnly", "Path=/", "SameSite=Lax", f"Max-Age={12 * _HOUR}"} | ({"Secure"} if secure else set())
        assert set(attributes) == wanted


def test_the_cookie_never_outlives_the_session() -> None:
    sessions = _sessions()
    session = sessions.begin(_ACCOUNT, _NOW)

    cookie = sessions.cookie(session, _NOW + 7 * 24 * _HOUR - 60)

    assert cookie is not None
    assert "Max-Age=60;" in cookie


@given(st.text(min_size=1, max_size=300), st.text(min_size=1, max_size=600))
@settings(max_examples=100, deadline=None)
def test_every_account_there_can_be_fits_into_a_cookie(username: str, password: str) -> None:
    sessions = _sessions()
    for derivation in ("none", "hcp"):
        account = derived(derivation, username, password)
        if account:
            cookie = sessions.cookie(sessions.begin(account))
            assert cookie is not None
            assert len(cookie) < 4096
            found = sessions.opened(cookie.partition("=")[2].partition(";")[0])
            assert found is not None
            assert found.account == account


def test_the_keys_of_an_account_of_hcp_are_base64_of_the_name_and_md5_of_the_password() -> None:
    # The example of the platform's manual.
    account = derived("hcp", "lgreen", "p4ssw0rd")

    assert account is not None
    assert (account.access, account.secret) == ("bGdyZWVu", "2a9d119df47ff993b662a8ef36f9ea20")


@pytest.mark.parametrize("username", ["", "a b", "a\r\nb", "å", "x" * 257, "\ud800", "\x00"])
def test_a_name_that_no_header_can_carry_is_no_access_key(username: str) -> None:
    assert derived("none", username, "secret") is None


@pytest.mark.parametrize(
    ("username", "password"),
    [("", "x"), ("x", ""), ("a\r\nb", "x"), ("x" * 257, "x"), ("x", "x" * 513), ("\ud800", "x")],
)
def test_a_name_or_a_password_that_nobody_has_is_no_account_of_hcp(username: str, password: str) -> None:
    assert derived("hcp", username, password) is None
