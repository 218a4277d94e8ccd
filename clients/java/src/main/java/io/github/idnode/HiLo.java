package io.github.idnode;

import static io.github.idnode.Background.MS;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Gives the ids of one collection, without a call for most of them; meant to be shared. The next range is fetched in the
 * background once half of the current one is used.
 */
public final class HiLo implements AutoCloseable {
  private static final long FETCH_PAUSE = 100 * MS; // After a prefetch that failed.
  private static final long LONGEST_FETCH_PAUSE = 10_000 * MS;
  private static final Duration FOREVER = Duration.ofDays(365); // A fetch ends with its own timeout.

  private final IdnodeClient client;
  private final String tag;
  private final CallOptions options;
  private Map<String, Object> request; // The next one. It belongs to the fetch in progress.
  private RequestId again; // That of a fetch whose outcome is unknown.
  private long lastMax;
  private final Lock lock = new ReentrantLock(); // Guards what follows.
  private final Condition changed = lock.newCondition();
  private Range current, ahead;
  private long left; // How many numbers of current are not taken.
  private boolean fetching, closed, returned;
  private int failures;
  private IdnodeException error; // That of the newest failure.
  private IdnodeException lost; // Why numbers were not given back.
  private long pause = FETCH_PAUSE, resume = System.nanoTime();

  HiLo(IdnodeClient client, String tag, Map<String, Object> first, CallOptions options) {
    this.client = client;
    this.tag = tag;
    this.options = options;
    request = first;
  }

  /**
   * Takes a number and returns its id, for example {@code users/65-A}.
   *
   * @return the id
   */
  public String nextId() { return next().toString(); }

  /**
   * Takes n numbers and returns their ids. They need not be consecutive. An exception has the ids that were taken before it.
   *
   * @param n how many, at least 1
   * @return the ids
   */
  public List<String> nextIds(int n) { return nextIds(n, FOREVER); }

  /**
   * The same, and waits for ranges no longer than the timeout. Then it throws a {@link DeadlineException}.
   *
   * @param n how many, at least 1
   * @param timeout above zero
   * @return the ids
   */
  public List<String> nextIds(int n, Duration timeout) {
    IdnodeClient.checkCount(n);
    var end = System.nanoTime() + IdnodeConfig.checked(timeout).toNanos();
    var ids = new ArrayList<String>();
    try {
      while (ids.size() < n) ids.add(next(end).toString());
    } catch (IdnodeException e) {
      throw e.with(ids);
    }
    return ids;
  }

  /**
   * Takes a number. It waits only if none is left of the ranges at hand.
   *
   * @return the number
   */
  public HiLoNumber next() { return next(FOREVER); }

  /**
   * The same, and waits no longer than the timeout. Then it throws a {@link DeadlineException}.
   *
   * @param timeout above zero
   * @return the number
   */
  public HiLoNumber next(Duration timeout) { return next(System.nanoTime() + IdnodeConfig.checked(timeout).toNanos()); }

  private HiLoNumber next(long end) {
    var began = System.nanoTime();
    lock.lock();
    try {
      for (var before = failures; ; ) {
        if (closed) throw IdnodeException.of(Problem.CLOSED, false, null);
        if (left > 0) {
          var number = new HiLoNumber(current.high() - --left, current.prefix(), current.nodeTag());
          if (number.value() - current.low() >= (current.high() - current.low()) / 2 && System.nanoTime() - resume >= 0) fetch();
          return number;
        }
        if (ahead != null) {
          current = ahead;
          left = current.high() - current.low() + 1;
          ahead = null;
        } else if (failures != before) {
          throw error.again();
        } else {
          fetch();
          if (fetching && !Background.await(changed, end)) throw client.gaveUp(began);
        }
      }
    } finally {
      lock.unlock();
    }
  }

  /**
   * Returns the unused numbers to the cluster, or throws why it could not. A range whose grant has an unknown outcome is left a hole
   * in silence. An interrupt does not end it; it takes no longer than the handle's timeout. Afterwards the handle throws a
   * {@link ClosedException}, and {@link IdnodeClient#hilo} makes another one.
   */
  @Override
  public void close() { IdnodeClient.closeAll(List.of(this::close), client.deadline(options)); }

  boolean isClosed() { return Background.locked(lock, () -> closed); }

  // In a thread that nobody interrupts. The first to close gives the numbers back; others wait for it.
  void close(long deadline) {
    Range newest, rest;
    lock.lock();
    try {
      if (closed) {
        while (!returned) changed.awaitUninterruptibly();
        if (lost != null) throw lost.again();
        return;
      }
      closed = true;
      changed.signalAll();
      while (fetching) changed.awaitUninterruptibly(); // It ends in its own time. A range that is on its way is given back too.
      newest = ahead;
      rest = left > 0 ? current : null;
    } finally {
      lock.unlock();
    }
    // Only the newest range of a tag can be given back, so the one ahead goes first.
    if (newest != null) giveBack(newest, newest.low() - 1, deadline);
    if (rest != null) giveBack(rest, rest.high() - left, deadline);
    Background.locked(lock, () -> {
      returned = true;
      changed.signalAll();
      return null;
    });
    if (lost != null) throw lost;
  }

  // The time of whoever closes may be over before a range comes.
  private void giveBack(Range range, long last, long deadline) {
    try {
      client.giveBack(tag, range, last, options, System.nanoTime() - deadline < 0 ? deadline : client.deadline(options));
    } catch (Throwable e) {
      lost = IdnodeClient.known(e);
    }
  }

  // Starts to fetch a range unless there is one, or one is coming. The caller holds the lock.
  private void fetch() {
    if (fetching || ahead != null) return;
    try {
      Background.thread(this::fetchOne, "idnode-hilo-" + tag).start(); // It needs the lock to end.
      fetching = true;
    } catch (OutOfMemoryError e) { // No thread can be started.
      failed(IdnodeClient.known(e));
    }
  }

  private Range fetch(RequestId id) {
    try {
      return client.call(Call.Kind.ONCE, "IdsService/NextRange", request, options.withRequestId(id), GrantedRange::of);
    } catch (RequestIdExpiredException e) {
      if (id == null) throw e;
      return fetch(null); // Nobody will know what the one asked for again was.
    }
  }

  private void fetchOne() {
    Range got = null;
    IdnodeException failed = null;
    try {
      got = fetch(again);
      if (got.low() < 1 || got.high() < got.low() || got.low() <= lastMax && !got.fromReserve()) {
        throw IdnodeClient.internal("a wrong range: " + got.low() + " to " + got.high() + " after " + lastMax, null);
      }
    } catch (Throwable e) { // The callers that wait must have it, whatever it is.
      failed = IdnodeClient.known(e);
    }
    // What may have been granted is asked for again, and is no hole then.
    again = failed != null && failed.outcomeUnknown() ? failed.requestId() : null;
    lock.lock();
    try {
      fetching = false;
      if (failed == null) arrived(got);
      else failed(failed);
    } finally {
      changed.signalAll();
      lock.unlock();
    }
  }

  private void arrived(Range got) {
    client.lent();
    lastMax = Math.max(lastMax, got.high());
    request = new LinkedHashMap<>(request);
    request.remove("size");
    RangeOptions.follow(request, got, lastMax);
    ahead = got;
    pause = FETCH_PAUSE;
  }

  private void failed(IdnodeException why) {
    failures++;
    error = why;
    resume = System.nanoTime() + Background.jitter(pause);
    pause = Math.min(2 * pause, LONGEST_FETCH_PAUSE);
  }
}
