"""A client of idnode, which hands out ids that are unique across a cluster.

    with idnode.Client(["a:7402", "b:7402", "c:7402"]) as ids:
        ids.identity("invoices").next()     # 1
        ids.hilo("users").next_id()         # 'users/1-A'
        ids.snowflake("orders").next_id()   # 1541815603606036480: 64 bits that sort by time
        ids.series("bills").take(["4711"])  # the number of document 4711
        ids.next("invoices|")               # 'invoices/2'

The package needs nothing but the standard library. It calls the API as JSON over HTTP. A Client is safe for concurrent
use by threads; make one and share it. ``idnode.aio`` has the client of asyncio. The logger ``idnode`` tells of tries that
failed and of late answers (INFO), and of looks for the leader (DEBUG).
"""

from ._config import TLS
from ._core import Counter, DocumentNumber, ValueBlock, __version__
from ._errors import (
    ClosedError, ConcurrencyError, DeadlineError, ExhaustedError, IdClaimedError, IdnodeError, InvalidError, KeyConflictError, NoEndpointError,
    NoQuorumError, NotFoundError, OtherClusterError, OutcomeUnknownError, OverloadedError, PermissionDeniedError, QuotaError, RateLimitedError,
    RequestId, RequestIdExpiredError, RequestIdReusedError, ReservationExpiredError, SeriesSuspendedError, StorageFullError,
)
from ._events import Event
from ._hilo import HiLoNumber, Range
from ._names import tag_of
from ._snowflake import SnowflakeParts
from ._threads import Client, HiLo, Identity, Series, Snowflake

__all__ = [
    "Client", "ClosedError", "ConcurrencyError", "Counter", "DeadlineError", "DocumentNumber", "Event", "ExhaustedError", "HiLo",
    "HiLoNumber", "IdClaimedError", "Identity", "IdnodeError", "InvalidError", "KeyConflictError", "NoEndpointError",
    "NoQuorumError", "NotFoundError", "OtherClusterError", "OutcomeUnknownError", "OverloadedError",
    "PermissionDeniedError", "QuotaError", "Range", "RateLimitedError", "RequestId", "RequestIdExpiredError",
    "RequestIdReusedError", "ReservationExpiredError", "Series", "SeriesSuspendedError", "Snowflake", "SnowflakeParts",
    "StorageFullError", "TLS", "ValueBlock", "__version__", "tag_of",
]
