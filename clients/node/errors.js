// The errors of calls, and what a failed try means.

"use strict";

class IdnodeError extends Error {
  code = "unknown";
  reason = "";
  field = "";
  requestId = undefined;
  retryAfter = undefined;
  ids = [];

  constructor(message, { cause, ...details } = {}) {
    const name = details.reason || details.code;
    super((name ? `${name}: ` : "") + message + (details.field ? ` (field ${details.field})` : ""), { cause });
    Object.assign(this, details);
    this.name = new.target.name;
  }

  toJSON() {
    return { ...this, message: this.message, ids: this.ids.map(String) };
  }
}

// An error of a caller's own, with its stack.
const copyOf = (error) => Object.assign(new error.constructor(error.message, { cause: error.cause }), error);

class OutcomeUnknownError extends IdnodeError {}
class NoQuorumError extends IdnodeError {}
class NoEndpointError extends IdnodeError {}
class DeadlineError extends IdnodeError {}
class OtherClusterError extends IdnodeError {}
class OverloadedError extends IdnodeError {}
class StorageFullError extends IdnodeError {}
class QuotaError extends IdnodeError {}
class RateLimitedError extends IdnodeError {}
class ExhaustedError extends IdnodeError {}
class ConcurrencyError extends IdnodeError {}
class IdClaimedError extends IdnodeError {}
class KeyConflictError extends IdnodeError {}
class SeriesSuspendedError extends IdnodeError {}
class ReservationExpiredError extends IdnodeError {}
class RequestIdReusedError extends IdnodeError {}
class RequestIdExpiredError extends IdnodeError {}
class PermissionDeniedError extends IdnodeError {}
class NotFoundError extends IdnodeError {}
class InvalidError extends IdnodeError {}
class ClosedError extends IdnodeError {}
class AbortError extends IdnodeError {}

const BY_REASON = {
  OUTCOME_UNKNOWN: OutcomeUnknownError, NO_QUORUM: NoQuorumError, LEADER_UNREACHABLE: NoQuorumError, NO_ENDPOINT: NoEndpointError,
  DEADLINE_EXCEEDED: DeadlineError, OTHER_CLUSTER: OtherClusterError,
  OVERLOADED: OverloadedError, STORAGE_FULL: StorageFullError, QUOTA: QuotaError, RATE_LIMITED: RateLimitedError,
  COUNTER_EXHAUSTED: ExhaustedError, CONCURRENCY: ConcurrencyError, ID_CLAIMED: IdClaimedError,
  REQUEST_ID_REUSED: RequestIdReusedError, REQUEST_ID_EXPIRED: RequestIdExpiredError,
  PERMISSION_DENIED: PermissionDeniedError, KEY_CONFLICT: KeyConflictError, SERIES_SUSPENDED: SeriesSuspendedError,
  RESERVATION_EXPIRED: ReservationExpiredError,
};
const BY_CODE = { not_found: NotFoundError, invalid_argument: InvalidError };

const closedError = () => new ClosedError("the client or the handle is closed", { code: "canceled", reason: "CLIENT_CLOSED" });
const aborted = (signal, unknown, requestId) =>
  new AbortError("the caller's signal ended the call", { code: "canceled", reason: unknown ? "OUTCOME_UNKNOWN" : "CANCELED", requestId, cause: signal.reason });
const invalid = (reason, field, message) => new InvalidError(message, { code: "invalid_argument", reason, field });

// A failed try. With late its time was over. Of a call: and a node has answered.
class Failure extends Error {
  constructor(message, code, reason = "", foreign = false, cause = undefined) {
    super(message, { cause });
    Object.assign(this, { code, reason, foreign, field: "", pause: 0, late: code === "deadline_exceeded" });
  }

  // What the try may have done: "nothing", which is "unknown", or "refused" for good.
  get effect() {
    if (this.reason === "OUTCOME_UNKNOWN") return "unknown";
    if (["OVERLOADED", "CERTIFICATE_ENDED", "NODE_TAG_NOT_ASSIGNED", "NOT_FORMED", "NOT_A_MEMBER", "CORRUPT", "OTHER_CLUSTER"].includes(this.reason)) return "nothing";
    if (this.reason) return { unavailable: "nothing", internal: "unknown" }[this.code] ?? "refused";
    // Not an answer of idnode's, or no answer at all.
    if (this.code === "unimplemented") return "nothing";
    return ["invalid_argument", "permission_denied", "unauthenticated"].includes(this.code) ? "refused" : "unknown";
  }

  // A node that answered tells more than one that was late, and that more than one that was not reached.
  get tells() {
    if (["NO_ENDPOINT", "DEADLINE_EXCEEDED"].includes(this.reason)) return 0;
    return this.late ? 1 : 2;
  }

  // Whether the state of the cluster refused the call, and not a node before it came there.
  get decided() {
    return this.reason !== "" && this.effect === "refused" && !["resource_exhausted", "permission_denied"].includes(this.code);
  }

  error(unknown, requestId) {
    // It is not a node of idnode's, or a call whose repetition changes nothing that matters.
    let { code, reason } = this;
    if (!reason && !unknown && this.effect !== "refused") reason = "NO_ENDPOINT";
    if (reason === "NO_ENDPOINT" && this.late) [code, reason] = ["deadline_exceeded", "DEADLINE_EXCEEDED"];
    const Kind = unknown ? OutcomeUnknownError : BY_REASON[reason] ?? BY_CODE[code] ?? IdnodeError;
    return new Kind(this.message, { code, reason, field: this.field, requestId, retryAfter: this.pause || undefined, cause: this.cause });
  }

  // Reads the answer to a call that a node, or something before it, refused.
  static of(status, body) {
    const foreign = status < 500 && ![408, 429].includes(status); // Nobody between here and a node passed the call on.
    const codes = { 401: "unauthenticated", 403: "permission_denied" };
    const failure = new Failure(`HTTP status ${status}`, codes[status] ?? (foreign ? "unimplemented" : "unavailable"), "", foreign);
    try {
      const { code, message = "", details = [] } = JSON.parse(body);
      if (typeof code !== "string") return failure;
      Object.assign(failure, { code, message, late: code === "deadline_exceeded" });
      for (const { debug = {} } of details) {
        if (debug.domain === "idnode") Object.assign(failure, { reason: debug.reason, foreign: debug.reason === "OTHER_CLUSTER" });
        for (const violation of debug.fieldViolations ?? []) failure.field = violation.field;
        if (debug.retryDelay) failure.pause = parseFloat(debug.retryDelay) * 1000;
      }
    } catch {
      // It is not a node that answers.
    }
    return failure;
  }
}

module.exports = {
  IdnodeError, OutcomeUnknownError, NoQuorumError, NoEndpointError, DeadlineError, OtherClusterError, OverloadedError, StorageFullError,
  QuotaError, RateLimitedError, ExhaustedError, ConcurrencyError, IdClaimedError, KeyConflictError, SeriesSuspendedError, ReservationExpiredError,
  RequestIdReusedError, RequestIdExpiredError, PermissionDeniedError, NotFoundError, InvalidError, ClosedError, AbortError,
  Failure, copyOf, closedError, aborted, invalid,
};
