package io.github.idnode;

import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;

// A failed try.
final class Failure extends Exception {
  // Reasons for which another node may do better.
  static final Set<String> NOT_HERE = Set.of("OVERLOADED", "CERTIFICATE_ENDED",
      "NODE_TAG_NOT_ASSIGNED", "NOT_FORMED", "NOT_A_MEMBER", "CORRUPT", "OTHER_CLUSTER", "DEADLINE_EXCEEDED");
  final Problem problem;
  final boolean foreign; // What answered is no node of the cluster.
  final Effect effect;

  Failure(Problem problem, boolean foreign, Throwable cause) {
    super(problem.message(), cause, false, false);
    this.problem = problem;
    this.foreign = foreign;
    effect = effect();
  }

  // Reads the answer to a call that a node, or something before it, refused.
  static Failure of(int status, String body) {
    var foreign = status < 500 && status != 408 && status != 429; // Nobody between here and a node passed the call on.
    var code = Map.of(401, "unauthenticated", 403, "permission_denied").getOrDefault(status, foreign ? "unimplemented" : "unavailable");
    Answer answer;
    try {
      answer = new Answer(Json.object(body));
    } catch (IllegalArgumentException e) {
      answer = new Answer(Map.of());
    }
    if (answer.maybe("code").isEmpty()) return new Failure(new Problem("HTTP status " + status, code, ""), foreign, null);
    String reason = "", field = "";
    Duration after = null;
    for (var detail : answer.objects("details").map(d -> d.object("debug")).toList()) {
      if (detail.maybe("domain").equals("idnode")) reason = detail.maybe("reason");
      foreign = reason.equals("OTHER_CLUSTER") || foreign && reason.isEmpty();
      for (var violation : detail.objects("fieldViolations").toList()) field = violation.maybe("field");
      var delay = detail.maybe("retryDelay");
      if (delay.matches("[0-9.]+s")) after = Duration.ofNanos((long) (Double.parseDouble(delay.replace("s", "")) * 1e9));
    }
    return new Failure(new Problem(answer.maybe("message"), answer.maybe("code"), reason, field, null, after), foreign, null);
  }

  private Effect effect() {
    var ours = !problem.reason().isEmpty(); // Else it is not an answer of idnode's, or no answer at all.
    if (problem.reason().equals("OUTCOME_UNKNOWN")) return Effect.UNKNOWN;
    if (NOT_HERE.contains(problem.reason()) || problem.code().equals(ours ? "unavailable" : "unimplemented")) return Effect.NOTHING;
    if (ours) return problem.code().equals("internal") ? Effect.UNKNOWN : Effect.REFUSED;
    return List.of("invalid_argument", "permission_denied", "unauthenticated").contains(problem.code()) ? Effect.REFUSED : Effect.UNKNOWN;
  }

  // Whether the state of the cluster refused the call, and not a node before it came there.
  boolean decided() {
    return effect == Effect.REFUSED && !problem.reason().isEmpty() && !List.of("resource_exhausted", "permission_denied").contains(problem.code());
  }

  // With heard, a node has answered.
  IdnodeException exception(boolean unknown, RequestId id, Throwable cause, boolean heard) {
    // It is not a node of idnode's, or a call whose repetition changes nothing that matters.
    var lost = !unknown && (problem.reason().isEmpty() && effect != Effect.REFUSED || problem.reason().equals("NO_ENDPOINT"));
    var late = getCause() instanceof InterruptedIOException || problem.code().equals("deadline_exceeded");
    if (lost && late && heard) return IdnodeException.of(Problem.LATE.with(Problem.LATE.reason(), id), false, cause);
    return IdnodeException.of(problem.with(lost ? "NO_ENDPOINT" : problem.reason(), id), unknown, cause);
  }
}
