package io.github.idnode;

import static io.github.idnode.Background.MS;

import java.io.InterruptedIOException;
import java.lang.System.Logger.Level;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;

// One call: tries at changing nodes until one gives a final answer or the time is over.
final class Call<T> {
  // How a call is repeated.
  enum Kind {
    READS(true, false, false),
    LOCAL(false, false, false), // Any node answers: with what it has applied, or with ids in which holes do not matter.
    ONCE(true, true, true), // It has a request id, and counts once.
    SERIES(true, true, false); // It may be repeated without a request id, but what a lost try has done matters.

    final boolean toLeader, changes, counted;

    Kind(boolean toLeader, boolean changes, boolean counted) {
      this.toLeader = toLeader;
      this.changes = changes;
      this.counted = counted;
    }
  }

  private static final long FIRST_PAUSE = 25 * MS; // Between tries, once every endpoint had its turn.
  private static final long LONGEST_PAUSE = 400 * MS;
  private static final int MAX_OVERLOADS = 3; // More tries would only keep an overload going.

  private final Router router;
  private final long tryTimeout, deadline, called = System.nanoTime();
  private final Kind kind;
  private final String method, traceparent;
  private final String body; // Without a request id.
  private final Function<Answer, T> read;
  // Whoever names an index has made the call before: its outcome is what it was until the cluster decides it.
  private final boolean repeats;
  private boolean renewable; // No other call has sent its id.
  private RequestId id; // Null unless it is counted.
  private Node node; // Of the newest try.
  private Failure told; // The failure that says most.
  private int overloads, foreign;
  private boolean lost, unknown; // A try of this call, or of any, may have taken effect.

  Call(Router router, IdnodeConfig config, long deadline, Kind kind, String method, Map<String, ?> request, CallOptions options,
      Function<Answer, T> read) {
    this.router = router;
    this.deadline = deadline;
    this.kind = kind;
    this.read = read;
    tryTimeout = config.tryTimeout().toNanos();
    var fields = new LinkedHashMap<String, Object>(request);
    fields.put("database", options.database == null ? config.database() : options.database);
    body = Json.text(fields);
    this.method = method;
    traceparent = options.traceparent;
    renewable = kind.counted && options.requestId == null;
    id = renewable ? new RequestId(UUID.randomUUID().toString()) : kind.counted ? options.requestId : null;
    repeats = id != null && id.since() != null;
    unknown = repeats;
  }

  T make() {
    var early = router.admit();
    if (early != null) throw ended(early);
    router.prepare(deadline, kind.toLeader, kind.counted);
    for (int tries = 1; ; tries++) {
      if (router.closed) throw ended(Problem.CLOSED);
      if (Thread.currentThread().isInterrupted()) throw ended(Problem.INTERRUPTED);
      node = router.route(kind.toLeader, node);
      var began = System.nanoTime();
      Failure last = null;
      try {
        return attempt();
      } catch (Failure failure) {
        note(last = failure);
      } finally {
        router.tell(Event.Kind.TRY, node.address, tries, began, last == null ? null : seen(last));
      }
      if (Thread.currentThread().isInterrupted()) throw ended(Problem.INTERRUPTED);
      if (renewed(last)) continue;
      var overloaded = last.problem.reason().equals("OVERLOADED");
      var pause = pause(last, tries, overloaded);
      var over = System.nanoTime() + pause - deadline >= 0;
      var refused = last.effect == Effect.REFUSED || overloads > MAX_OVERLOADS || foreign >= router.reach().size();
      if (refused || over) throw told.exception(unknown, id, refused ? told.getCause() : Background.timeout(told.getCause()), router.heard(called));
      Router.LOG.log(Level.DEBUG, () -> method + " is tried again after " + pause / MS + " ms", last);
      LockSupport.parkNanos(pause);
      if (!overloaded) router.failed(node);
    }
  }

  private T attempt() throws Failure {
    var tried = node;
    // Whatever is not known to be a node of the cluster gets no call.
    if (router.own().isEmpty() || !tried.greeted()) router.greet(tried, tryTimeout, deadline, new Silence(router, tried));
    // The first try says it too: the network may hold it up until its retry was forgotten. A try that certainly did nothing is none.
    if (id != null && !unknown) id = new RequestId(id.id(), router.newest > 0 ? router.newest : null);
    var whole = id == null ? body : body.substring(0, body.length() - 1) + ",\"requestId\":" + Json.text(id.fields()) + "}";
    var query = new Query(method, whole, traceparent, router.own(), kind.toLeader);
    var got = tried.call(
        query, tryTimeout, deadline, (answer, reply) -> Map.entry(answer.number("logIndex"), read.apply(answer)), new Silence(router, tried));
    router.succeeded(tried, got.getKey());
    return got.getValue();
  }

  private IdnodeException seen(Failure last) { return last.exception(unknown, id, last.getCause(), router.heard(called)); }

  private void note(Failure last) {
    // A node that answered tells more than one that was not reached, and an answer that was lost more than a time that was over.
    var late = told != null && told.problem.reason().isEmpty() && last.getCause() instanceof InterruptedIOException;
    if (told == null || !late && !List.of("NO_ENDPOINT", "DEADLINE_EXCEEDED").contains(last.problem.reason())) told = last;
    lost |= last.effect == Effect.UNKNOWN && kind.changes;
    unknown = lost || repeats && !last.decided();
    if (unknown && id != null && id.since() == null) id = new RequestId(id.id(), 0L);
    if (last.problem.reason().equals("OVERLOADED")) overloads++;
    // What answers is no node: a mistake if none ever did, or it is another cluster's. Else a proxy may say so for a while.
    var mistaken = last.problem.reason().equals("OTHER_CLUSTER") || router.newest == 0;
    foreign = last.foreign && last.effect != Effect.UNKNOWN && mistaken ? foreign + 1 : 0;
  }

  // Names a newer index, once, if the one named was forgotten before the first try came. A copy of that try which comes late
  // names the old index.
  private boolean renewed(Failure last) {
    if (!renewable || unknown || !last.problem.reason().equals("REQUEST_ID_EXPIRED")) return false;
    if (router.latest(deadline, 0, look -> look.done) <= (id.since() == null ? 0 : id.since())) return false;
    renewable = false;
    node = null;
    told = null;
    return true;
  }

  // The time until the next try: none while there are endpoints that were not tried yet.
  private long pause(Failure last, int tries, boolean overloaded) {
    if (overloaded) return Math.max(last.problem.retryAfter() == null ? 0 : last.problem.retryAfter().toNanos(), FIRST_PAUSE);
    var round = tries - router.reach().size();
    return round < 0 ? 0 : Background.jitter(Math.min(FIRST_PAUSE << Math.min(round, 10), LONGEST_PAUSE));
  }

  private IdnodeException ended(Problem why) { return IdnodeException.of(why.with(why.reason(), id), unknown, told); }
}
