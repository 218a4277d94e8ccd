"""What calls fail with, and how a failed try is read."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Sequence, Union


@dataclass(frozen=True)
class RequestId:
    """Makes a call count once."""

    id: str  #: 1 to 64 bytes, unique per database and principal.
    since: int | None = None  #: The log index that was known before the first try.


AnyRequestId = Union[str, RequestId, None]


class IdnodeError(Exception):
    """Why a call failed. The subclasses tell the cases apart that a program can act on."""

    ids: Sequence[Any] = ()  #: Those that next_ids of a handle had taken before it failed.

    def __init__(
        self, message: str, *, code: str = "unknown", reason: str = "", field: str = "", request_id: RequestId | None = None,
        retry_after: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.message = message  #: A text for people.
        self.code = code  #: The gRPC status code in lower case, for example ``"unavailable"``.
        self.reason = reason  #: The API's name of the cause, for example ``"ID_CLAIMED"``; may be empty.
        self.field = field  #: The field of the request that is at fault, if there is one.
        self.request_id = request_id  #: The same call with it counts once; None if the call had none.
        self.retry_after = retry_after  #: Seconds to wait before the next call, if the node named a time; else 0.

    def __str__(self) -> str:
        field = f" (field {self.field})" if self.field else ""
        return f"{self.reason or self.code}: {self.message}{field}"


class OutcomeUnknownError(IdnodeError, TimeoutError):
    """The time was over before the outcome was known. A try of the call may have taken effect. Repeating it with ``request_id`` counts once."""


class NoQuorumError(IdnodeError):
    """The cluster has no leader, or no majority, or the leader does not answer the node. Nothing happened."""


class NoEndpointError(IdnodeError, ConnectionError):
    """No node could be reached. Nothing happened."""


class DeadlineError(IdnodeError, TimeoutError):
    """The time was over before an answer, a range or a lease came. Nothing happened."""


class OtherClusterError(IdnodeError):
    """The nodes that answer are of another cluster than the client, or the endpoints are of two. Nothing happened."""


class OverloadedError(IdnodeError):
    """There are too many calls. Nothing happened."""


class StorageFullError(IdnodeError):
    """A disk of the cluster is nearly full. Nothing happened."""


class QuotaError(IdnodeError):
    """A limit on names, claims or sizes is reached. Nothing happened."""


class RateLimitedError(IdnodeError):
    """The caller has reached a limit of its own. Nothing happened."""


class ExhaustedError(IdnodeError):
    """The counter has no numbers left."""


class ConcurrencyError(IdnodeError):
    """An expected value is not the current one."""


class IdClaimedError(IdnodeError):
    """The id is claimed, or was issued by an identity."""


class KeyConflictError(IdnodeError):
    """The document's key has a number of another date or scope."""


class SeriesSuspendedError(IdnodeError):
    """The series was restored, and gives no numbers until somebody has looked into the books."""


class ReservationExpiredError(IdnodeError):
    """The number's time ended, and another document has it."""


class RequestIdReusedError(IdnodeError):
    """The request id was used for another request."""


class RequestIdExpiredError(IdnodeError):
    """The cluster no longer knows whether the first try of the call happened."""


class PermissionDeniedError(IdnodeError):
    """The caller's certificate has no right to it. Nothing happened."""


class NotFoundError(IdnodeError):
    """There is no such identity, counter or claim."""


class InvalidError(IdnodeError):
    """The request is wrong: ``field`` says where, ``reason`` why."""


class ClosedError(IdnodeError):
    """The client, or the handle, was closed."""


_BY_REASON: dict[str, type[IdnodeError]] = {
    "OUTCOME_UNKNOWN": OutcomeUnknownError, "NO_QUORUM": NoQuorumError, "LEADER_UNREACHABLE": NoQuorumError,
    "NO_ENDPOINT": NoEndpointError, "DEADLINE_EXCEEDED": DeadlineError,
    "OTHER_CLUSTER": OtherClusterError, "OVERLOADED": OverloadedError, "STORAGE_FULL": StorageFullError, "QUOTA": QuotaError,
    "RATE_LIMITED": RateLimitedError, "COUNTER_EXHAUSTED": ExhaustedError, "CONCURRENCY": ConcurrencyError,
    "ID_CLAIMED": IdClaimedError, "REQUEST_ID_REUSED": RequestIdReusedError, "REQUEST_ID_EXPIRED": RequestIdExpiredError,
    "PERMISSION_DENIED": PermissionDeniedError, "KEY_CONFLICT": KeyConflictError, "SERIES_SUSPENDED": SeriesSuspendedError,
    "RESERVATION_EXPIRED": ReservationExpiredError,
}
_BY_CODE: dict[str, type[IdnodeError]] = {"not_found": NotFoundError, "invalid_argument": InvalidError}


def invalid(reason: str, field: str, message: str) -> InvalidError:
    return InvalidError(message, code="invalid_argument", reason=reason, field=field)


def closed(what: str) -> ClosedError:
    return ClosedError(f"the {what} is closed", code="canceled", reason="CLIENT_CLOSED")


# What a failed try may have done.
NOTHING, UNKNOWN, REFUSED = "nothing", "unknown", "refused"
_NOTHING = (
    "OVERLOADED", "CERTIFICATE_ENDED", "NODE_TAG_NOT_ASSIGNED", "NOT_FORMED", "NOT_A_MEMBER", "CORRUPT", "OTHER_CLUSTER", "DEADLINE_EXCEEDED",
)


class Failure(Exception):
    """A failed try."""

    def __init__(self, message: str, code: str, reason: str = "", foreign: bool = False, late: bool = False) -> None:
        super().__init__(message)
        self.message, self.code, self.reason, self.foreign = message, code, reason, foreign
        self.field, self.pause = "", 0.0
        self.late = late  # The time was over. Of a call: and a node has answered.

    def effect(self) -> str:
        if self.reason == "OUTCOME_UNKNOWN":
            return UNKNOWN
        if self.reason in _NOTHING:
            return NOTHING
        if not self.reason:  # Not an answer of idnode's, or no answer at all.
            if self.code == "unimplemented":
                return NOTHING
            refused = self.code in ("invalid_argument", "permission_denied", "unauthenticated")
            return REFUSED if refused else UNKNOWN
        return {"unavailable": NOTHING, "internal": UNKNOWN}.get(self.code, REFUSED)

    def tells(self) -> int:
        """How much: a node that answered more than one that was late, and that more than none at all."""
        return 0 if self.reason in ("NO_ENDPOINT", "DEADLINE_EXCEEDED") else 1 if self.late else 2

    def decided(self) -> bool:
        """Whether the state of the cluster refused the call, and not a node before it came there."""
        before = self.code in ("resource_exhausted", "permission_denied")
        return bool(self.reason) and not before and self.effect() == REFUSED

    def error(self, unknown: bool, request_id: RequestId | None) -> IdnodeError:
        code, reason = self.code, self.reason
        if not reason and not unknown and self.effect() != REFUSED:
            reason = "NO_ENDPOINT"  # Not a node of idnode's, or a call that changes nothing that matters.
        if reason == "NO_ENDPOINT" and self.late:
            code, reason = "deadline_exceeded", "DEADLINE_EXCEEDED"
        kind = _BY_REASON.get(reason) or _BY_CODE.get(code) or IdnodeError
        if unknown:
            kind = OutcomeUnknownError
        error = kind(self.message, code=code, reason=reason, field=self.field, request_id=request_id, retry_after=self.pause)
        error.__cause__ = self.__cause__
        return error


def failure_of(status: int, body: bytes) -> Failure:
    """Reads the answer of a call that a node, or something before it, refused."""
    foreign = status < 500 and status not in (408, 429)  # Nobody between here and a node passed the call on.
    codes = {401: "unauthenticated", 403: "permission_denied"}
    failure = Failure(f"HTTP status {status}", codes.get(status, "unimplemented" if foreign else "unavailable"), foreign=foreign)
    try:
        problem = json.loads(body)
        failure.code, failure.message = str(problem["code"]), str(problem.get("message", ""))
        failure.late = failure.code == "deadline_exceeded"
        for detail in [detail.get("debug") or {} for detail in problem.get("details", [])]:
            if detail.get("domain") == "idnode":
                failure.reason = detail.get("reason", "")
                failure.foreign = failure.reason == "OTHER_CLUSTER"
            for violation in detail.get("fieldViolations", []):
                failure.field = violation.get("field", "")
            if "retryDelay" in detail:
                failure.pause = _seconds(detail["retryDelay"])
    except (ValueError, KeyError, TypeError, AttributeError):
        pass  # It is not a node that answers.
    return failure


def _seconds(duration: str) -> float:
    """The time that protobuf's JSON has as text, at most an hour."""
    return min(float(duration[:-1]), 3600.0) if re.fullmatch(r"[0-9.]+s", duration) else 0.0
