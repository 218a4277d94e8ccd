"""What is checked before a call is made."""

from __future__ import annotations

import os
import re
from typing import Any, Sequence

from ._errors import invalid

_LONGEST_TIMEOUT = 1e6  # Seconds.
_MOST_CONNECTIONS = 1000  # A node drops those beyond 1,024 of an address.
_LONGEST_LABEL = 64  # Bytes.


def label(given: str, host: str, program: str) -> str:
    """The one that is given, or the names of the host and of the program, as a label may have them."""
    if not isinstance(given, str) or len(given.encode()) > _LONGEST_LABEL:
        raise ValueError(f"a label is text of at most {_LONGEST_LABEL} bytes, not {given!r}")
    names = re.sub("[^ -~\\w]|[\u115f\u1160\u3164\uffa0]", "", f"{host} {os.path.basename(program)}").strip()
    return given or names.encode()[:_LONGEST_LABEL].decode(errors="ignore")  # The last character may be cut.


def timeout(given: float) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given <= _LONGEST_TIMEOUT:
        raise ValueError(f"a timeout is above zero, and at most {_LONGEST_TIMEOUT:.0f} s, not {given!r}")
    return given


def endpoints(given: Sequence[str]) -> list[str]:
    if isinstance(given, (str, bytes)) or not given:
        raise ValueError("endpoints is a list of at least one address")
    return list(given)


def connections(given: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= _MOST_CONNECTIONS:
        raise ValueError(f"max_connections is from 1 to {_MOST_CONNECTIONS}, not {given!r}")
    return given


def function(name: str, given: Any) -> Any:
    if given is not None and not callable(given):
        raise ValueError(f"{name} is a function, not {given!r}")
    return given


def cluster_id(given: str) -> str:
    if not isinstance(given, str) or not re.fullmatch("[!-~]{0,64}", given):
        raise ValueError(f"not the id of a cluster: {given!r}")
    return given


def whole(name: str, value: int) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, not {value!r}")
    return str(value)


def text(name: str, value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is text, not {value!r}")
    return value


def duration(name: str, given: float) -> str:
    """A time as the API writes it. Less than a nanosecond would be none there."""
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 1e-9 <= abs(given) < 1e12:
        raise invalid("INVALID_OPTION", name, f"a number of seconds is expected, not {given!r}")
    return f"{given:.9f}s"


def count(n: int) -> None:
    whole("n", n)
    if n < 1:
        raise invalid("INVALID_COUNT", "count", "it must be at least 1")


def id_(given: str) -> None:
    if text("id", given).startswith("/"):
        raise invalid("INVALID_ID", "id", "an id must not begin with /")
