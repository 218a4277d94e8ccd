"""What is checked before a call is made."""

from __future__ import annotations

import os
import re

from ._errors import invalid

_LONGEST_TIMEOUT = 1e6  # Seconds.
_LONGEST_LABEL = 64  # Bytes.


def label(given: str, host: str, program: str) -> str:
    """The one that is given, or the names of the host and of the program, as a label may have them."""
    if len(given.encode()) > _LONGEST_LABEL:
        raise ValueError(f"a label has at most {_LONGEST_LABEL} bytes")
    names = re.sub("[^ -~\\w]|[\u115f\u1160\u3164\uffa0]", "", f"{host} {os.path.basename(program)}").strip()
    return given or names.encode()[:_LONGEST_LABEL].decode(errors="ignore")  # The last character may be cut.


def timeout(given: float) -> float:
    if isinstance(given, bool) or not 0 < given <= _LONGEST_TIMEOUT:
        raise ValueError(f"a timeout is above zero, and at most {_LONGEST_TIMEOUT:.0f} s, not {given!r}")
    return given


def cluster_id(given: str) -> str:
    if not re.fullmatch("[!-~]{0,64}", given):
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


def count(n: int) -> None:
    whole("n", n)
    if n < 1:
        raise invalid("INVALID_COUNT", "count", "it must be at least 1")


def id_(given: str) -> None:
    if text("id", given).startswith("/"):
        raise invalid("INVALID_ID", "id", "an id must not begin with /")
