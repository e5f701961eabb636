"""Moments and URLs as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from concord.core.errors import BadValue
from concord.core.values import moment, without_password

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(("text", "days"), [("12h", 0.5), ("7d", 7), ("2 w", 14), ("1Y", 365), (" 7d ", 7)])
def test_how_long_ago_is_counted_from_now(text: str, days: float):
    assert moment(text, now=NOW) == NOW - days * 86_400
    assert moment(text, now=NOW, is_end=True) == NOW - days * 86_400


def test_a_day_begins_and_ends_where_this_machine_is():
    begins = datetime(2026, 1, 31).astimezone()
    assert moment("2026-01-31", now=NOW) == begins.timestamp()
    ends = datetime(2026, 1, 31, 23, 59, 59, 999_999).astimezone()
    assert moment("2026-01-31", now=NOW, is_end=True) == pytest.approx(ends.timestamp(), abs=1e-5)
    assert moment("2026-01-31", now=NOW, is_end=True) < moment("2026-02-01", now=NOW)


@pytest.mark.parametrize(
    "text", ["", "yesterday", "7", "d", "-7d", "7m", "2026-13-01", "31.01.2026", "9999999d", "0001-01-01\0"]
)
def test_what_is_no_date_is_refused_with_what_one_looks_like(text: str):
    with pytest.raises(BadValue, match="is no date") as fault:
        moment(text, now=NOW)
    assert "2026-01-31" in (fault.value.hint or "")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://:secret@host/db", "postgresql://:***@host/db"),
        (
            "postgresql://h/db?user=me&password=secret&sslmode=x",
            "postgresql://h/db?user=me&password=***&sslmode=x",
        ),
        ("postgresql://me:sec@ret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:sec/ret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://host:5432/db?user=a@b", "postgresql://host:5432/db?user=a@b"),
        ("http://host:6333/under@path", "http://host:6333/under@path"),
        ("sqlite:////home/me:odd@dir", "sqlite:////home/me:odd@dir"),
        ("memory://", "memory://"),
    ],
)
def test_passwords_are_never_shown(url: str, shown: str):
    assert without_password(url) == shown
