"""What a client tells an observer, as metrics need it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Callable

log = logging.getLogger("idnode")


@dataclass(frozen=True)
class Event:
    """Something that a client did for its calls."""

    #: ``try``: a try of a call ended, which has all fields. ``look``: a look for the leader ended, with a duration, and the leader's
    #: node if one was found. ``leader``: calls now go to another leader, at node. ``gap``: unused numbers of a HiLo range came
    #: back after another client had got a range of the tag.
    kind: str
    node: str = ""  #: The address of a node.
    attempt: int = 0  #: Counts the tries of a call, from 1.
    duration: float = 0.0  #: The time that it took, in seconds.
    err: BaseException | None = None  #: Why it failed.


Observe = Callable[[Event], None]


def teller(observe: Observe | None) -> Observe:
    """Tells an observer, whose errors end no call. It is called in the thread, or the loop, of the client's work, without a lock."""
    def tell(event: Event) -> None:
        if observe:
            try:
                observe(event)
            except Exception:
                log.exception("an observer failed")
    return tell
