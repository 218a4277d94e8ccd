package io.github.idnode;

import static io.github.idnode.Background.MS;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.stream.LongStream;

/**
 * Makes the 64-bit ids of a pool, most of them without a call; meant to be shared. The cluster leases it a worker with a window
 * of the ids' own time, which no other worker of that number overlaps, so no id comes twice. At half of its time the window is
 * renewed in the background, while ids are made. {@code idnode snowflake define} defines a pool.
 */
public final class Snowflake implements AutoCloseable {
  private static final int MAX_COUNT = 10_000;
  private static final Duration FOREVER = Duration.ofDays(365); // A lease ends with its own timeout.

  private final IdnodeClient client;
  private final String pool;
  private final CallOptions options;
  private final CountDownLatch ended = new CountDownLatch(1); // It is closed.
  private volatile Clock clock = Clock.read();
  private volatile Lease held; // Null before the first lease, and after one that has passed.
  private volatile Lease.Layout layout; // That of the newest lease.
  private final Lock lock = new ReentrantLock(); // Guards what follows, and the writing of held.
  private final Condition changed = lock.newCondition();
  private boolean leasing, returned;
  private Lease unused; // It came after held was closed.
  private int failures;
  private IdnodeException error; // That of the newest failure.
  private IdnodeException lost; // Why the window was not given back.

  Snowflake(IdnodeClient client, String pool, CallOptions options) {
    this.client = client;
    this.pool = pool;
    this.options = options;
  }

  /**
   * The parts of an id.
   *
   * @param time when the unit of the id's time begins
   * @param worker who made the id, from 0
   * @param sequence the id's number within the unit, from 0
   */
  public record Parts(Instant time, int worker, long sequence) {}

  // The wall clock when it was read last. From there on the time is that of the monotonic clock, so that a wall clock that is set
  // changes nothing in the middle of a window.
  private record Clock(long millis, long nanos) {
    static Clock read() { return new Clock(System.currentTimeMillis(), System.nanoTime()); }

    long now() { return millis + (System.nanoTime() - nanos) / MS; }

    String text() { return Instant.ofEpochMilli(now()).toString(); }
  }

  /**
   * Makes an id. It waits for a lease, for a window that begins later, and where the ids of the times up to now are used up.
   * A window that begins later than the timeout allows is {@code WINDOW_EARLY}. After an exception, the next call tries again.
   *
   * @return the id
   */
  public long nextId() { return nextId(FOREVER); }

  /**
   * The same, and waits no longer than the timeout. Then it throws a {@link DeadlineException}.
   *
   * @param timeout above zero
   * @return the id
   */
  public long nextId(Duration timeout) { return next(System.nanoTime() + IdnodeConfig.checked(timeout).toNanos()); }

  /**
   * Makes n ids, which rise. An exception has the ids that were made before it.
   *
   * @param n how many, 1 to 10,000
   * @return the ids
   */
  public long[] nextIds(int n) { return nextIds(n, FOREVER); }

  /**
   * The same, and waits no longer than the timeout. Then it throws a {@link DeadlineException}.
   *
   * @param n how many, 1 to 10,000
   * @param timeout above zero
   * @return the ids
   */
  public long[] nextIds(int n, Duration timeout) {
    var wrong = new Problem("it must be from 1 to 10,000", "invalid_argument", "INVALID_COUNT", "count");
    if (n < 1 || n > MAX_COUNT) throw new InvalidException(wrong);
    var end = System.nanoTime() + IdnodeConfig.checked(timeout).toNanos();
    var ids = new long[n];
    for (var i = 0; i < n; i++) {
      try {
        ids[i] = next(end);
      } catch (IdnodeException e) {
        throw e.with(LongStream.of(ids).limit(i).mapToObj(Long::toString).toList());
      }
    }
    return ids;
  }

  private long next(long end) {
    for (; ; ) {
      var lease = held;
      var now = lease == null ? 0 : lease.layout.at(clock.now());
      var id = lease == null ? Lease.PASSED : lease.take(now);
      if (id >= 0) {
        if (now >= lease.renewAt && lease.renewing.compareAndSet(false, true)) renew(lease);
        return id;
      }
      if (id == Lease.PASSED) lease(lease, end);
      else pause(-id, end);
    }
  }

  /**
   * Divides an id of this pool. It asks for the pool's layout if no id was made yet.
   *
   * @param id any id of the pool
   * @return its parts
   */
  public Parts parse(long id) {
    if (layout != null) return layout.parts(id);
    Function<Answer, Optional<Lease.Layout>> read = answer -> answer.objects("pools") // In order, so the first is the one, if it is there.
        .filter(one -> one.text("name").equalsIgnoreCase(pool)).findFirst().map(one -> Lease.Layout.of(one.get("layout")));
    var got = client.call(Call.Kind.READS, "SnowflakeService/ListPools", Map.of("prefix", pool, "pageSize", 1), options, read);
    var missing = new Problem("there is no such pool", "not_found", "POOL_NOT_FOUND", "pool");
    return got.orElseThrow(() -> IdnodeException.of(missing, false, null)).parts(id);
  }

  /**
   * Frees the worker, and the rest of its window. An interrupt does not end it; it takes no longer than the handle's timeout.
   * Afterwards the handle throws a {@link ClosedException}, and {@link IdnodeClient#snowflake} makes another one. An exception
   * says that the worker is another's only when the window ends. A lease whose grant has an unknown outcome ends so in silence.
   */
  @Override
  public void close() { IdnodeClient.closeAll(List.of(this::close), client.deadline(options)); }

  boolean isClosed() { return ended.getCount() == 0; }

  // In a thread that nobody interrupts. The first to close gives the window back; others wait for it.
  void close(long deadline) {
    Lease rest;
    long next;
    lock.lock();
    try {
      if (isClosed()) {
        while (!returned) changed.awaitUninterruptibly();
        if (lost != null) throw lost.again();
        return;
      }
      ended.countDown();
      changed.signalAll();
      next = held == null ? 0 : held.end(); // No id is made from here on.
      while (leasing) changed.awaitUninterruptibly(); // It ends in its own time. A window that is on its way is given back too.
      rest = unused != null ? unused : held;
      if (unused != null) next = unused.end();
    } finally {
      lock.unlock();
    }
    // The time of whoever closes may be over before a window comes.
    if (rest != null) release(rest, next, System.nanoTime() - deadline < 0 ? deadline : client.deadline(options));
    Background.locked(lock, () -> {
      returned = true;
      changed.signalAll();
      return null;
    });
    if (lost != null) throw lost;
  }

  private void release(Lease lease, long next, long deadline) {
    try {
      var request = lease.request(pool, "next", String.valueOf(next));
      client.call(deadline, Call.Kind.SERIES, "SnowflakeService/ReleaseWorker", request, options, answer -> true);
    } catch (Throwable e) {
      var why = IdnodeClient.known(e);
      if (!why.reason().equals("LEASE_PASSED")) lost = why; // Else there is nothing to give back.
    }
  }

  private void pause(long millis, long end) {
    if (millis > client.timeout(options).toMillis()) {
      var message = "the window begins in " + millis + " ms: another may still make ids until then, or the clock is late";
      throw IdnodeException.of(new Problem(message, "unavailable", "WINDOW_EARLY", "", null, Duration.ofMillis(millis)), false, null);
    }
    var wake = System.nanoTime() + millis * MS;
    var late = wake - end > 0;
    if (Background.await(ended, late ? end : wake)) throw IdnodeException.of(Problem.CLOSED, false, null);
    if (late || Thread.currentThread().isInterrupted()) throw IdnodeException.gaveUp();
  }

  // Waits until a lease that has passed is replaced; null is none. One thread leases for all callers.
  private void lease(Lease passed, long end) {
    var began = System.nanoTime();
    lock.lock();
    try {
      if (held == passed && !isClosed()) held = null; // It does not come again, though the clock may be set back now.
      for (var before = failures; held == null || isClosed(); ) {
        if (isClosed()) throw IdnodeException.of(Problem.CLOSED, false, null);
        if (failures != before) throw error.again();
        if (!leasing) startToLease();
        if (leasing && !Background.await(changed, end)) throw client.gaveUp(began);
      }
    } finally {
      lock.unlock();
    }
  }

  // The caller holds the lock.
  private void startToLease() {
    try {
      Background.thread(this::acquire, "idnode-snowflake-" + pool).start(); // It needs the lock to end.
      leasing = true;
    } catch (OutOfMemoryError e) { // No thread can be started.
      failures++;
      error = IdnodeClient.known(e);
    }
  }

  private void acquire() {
    Lease got = null;
    IdnodeException failed = null;
    try {
      clock = Clock.read();
      var request = Map.of("pool", pool, "holder", client.label(), "now", clock.text());
      got = client.call(Call.Kind.ONCE, "SnowflakeService/AcquireWorker", request, options, Lease::new);
      client.lent();
    } catch (Throwable e) { // The callers that wait must have it, whatever it is.
      failed = IdnodeClient.known(e);
    }
    lock.lock();
    try {
      leasing = false;
      error = failed == null ? error : failed;
      layout = got == null ? layout : got.layout;
      if (failed != null) failures++;
      else if (isClosed()) unused = got;
      else held = got;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  // Renews a window beside the calls, at half of its time. After a failure it is tried again at a tenth of the rest.
  private void renew(Lease lease) {
    try {
      Background.thread(() -> renewNow(lease), "idnode-snowflake-" + pool).start();
    } catch (OutOfMemoryError e) { // No thread can be started.
      renewed(lease, 10);
    }
  }

  private void renewNow(Lease lease) {
    var part = 2;
    try {
      if (System.currentTimeMillis() > clock.now()) clock = Clock.read(); // The machine may have slept.
      var request = lease.request(pool, "now", clock.text());
      long until = client.call(Call.Kind.SERIES, "SnowflakeService/RenewWorker", request, options, answer -> answer.number("until"));
      lease.until = Math.max(until, lease.until);
    } catch (IdnodeException e) { // Ids are made to the end of the window all the same.
      part = 10;
    } finally {
      renewed(lease, part);
    }
  }

  private void renewed(Lease lease, int part) {
    var now = lease.layout.at(clock.now());
    lease.renewAt = now + (lease.until - now) / part;
    lease.renewing.set(false);
  }
}
