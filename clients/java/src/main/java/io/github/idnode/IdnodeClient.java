package io.github.idnode;

import static io.github.idnode.Background.MS;
import static java.util.Objects.requireNonNull;

import java.lang.ref.Cleaner;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.function.LongConsumer;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;

/**
 * A client of idnode, which hands out ids that are unique across a cluster.
 *
 * <pre>{@code
 * try (var ids = new IdnodeClient(List.of("a:7402", "b:7402", "c:7402"))) {
 *   ids.identity("invoices").next();           // 1
 *   ids.next("invoices|");                     // "invoices/2"
 *   ids.hilo("users").nextId();                // "users/1-A"
 *   ids.series("bills").take(List.of("4711")); // the number of document 4711
 *   ids.snowflake("orders").nextId();           // 2071231455764844544
 * }
 * }</pre>
 *
 * <p>It calls the API as JSON over HTTP, and needs nothing but Java 17. It is safe for concurrent use: make one and share it.
 * Every method that calls the cluster throws an {@link IdnodeException}. An interrupt ends the call, but no closing, with a
 * {@link CallInterruptedException}, and the interrupt flag stays set. No lock pins a virtual thread.
 *
 * <p>The logger {@code io.github.idnode} gets a line of the level {@code DEBUG} for each try that failed and each look for the
 * leader, and one of the level {@code INFO} when another node leads.
 */
public final class IdnodeClient implements AutoCloseable {
  private static final int CLOSERS = 16; // How many handles are closed side by side.
  private static final int CALLERS = 64; // How many threads asynchronous calls have.
  private static final int MAX_QUEUED = 10_000; // How many of them may wait for a thread.
  // When an asynchronous call was begun, in the thread that makes it.
  private static final ThreadLocal<Long> BEGUN = new ThreadLocal<>();
  private static final long CLOSE_SLACK = 100 * MS; // How much longer than its time a try may take at the most.

  private static final Cleaner CLEANER = Cleaner.create();

  private final IdnodeConfig config;
  private final Router router;
  private final Executor executor;
  private final Lock lock = new ReentrantLock(); // Guards what follows.
  private final Map<List<String>, HiLo> handles = new HashMap<>();
  private final Map<List<String>, Snowflake> snowflakes = new HashMap<>();
  private boolean closing;

  /**
   * A client without TLS, with the usual timeouts.
   *
   * @param endpoints addresses of nodes of one cluster, as {@code host:port} or URLs
   */
  public IdnodeClient(List<String> endpoints) { this(endpoints, new IdnodeConfig()); }

  /**
   * Makes no call yet. The endpoints are HTTP addresses of nodes of one cluster, as {@code host:port} or URLs. Throws an
   * {@link IllegalArgumentException} if one is none.
   *
   * @param endpoints addresses of nodes of one cluster, as {@code host:port} or URLs
   * @param config what else the client is told
   */
  public IdnodeClient(List<String> endpoints, IdnodeConfig config) {
    this.config = requireNonNull(config, "config");
    router = new Router(endpoints, config);
    executor = config.executor() != null ? config.executor() : ownExecutor();
    CLEANER.register(this, router::dropped);
  }

  /**
   * A client as the environment configures it. {@code IDNODE_HTTP_ENDPOINTS} lists the nodes' HTTP addresses, separated by commas;
   * {@code IDNODE_DATABASE} and {@code IDNODE_CLUSTER_ID} are those of {@link IdnodeConfig}; {@code IDNODE_TLS_CA}, {@code IDNODE_TLS_CERT} and
   * {@code IDNODE_TLS_KEY} are PEM files, of which the first turns TLS on; {@code IDNODE_TLS_SERVER_NAME} is the name in the nodes' certificates.
   * Throws an {@link IllegalArgumentException} if {@code IDNODE_HTTP_ENDPOINTS} is missing, or something is wrong.
   *
   * @return the client
   */
  public static IdnodeClient fromEnv() { return fromEnv(config -> config); }

  /**
   * The same with options of the program, which win.
   *
   * @param options changes the configuration
   * @return the client
   */
  public static IdnodeClient fromEnv(UnaryOperator<IdnodeConfig> options) {
    var settings = Settings.fromEnv(System.getenv());
    return new IdnodeClient(settings.endpoints(), options.apply(settings.config()));
  }

  /**
   * A client as a URL configures it: {@code idnode+http://HOST:PORT,HOST:PORT/DATABASE}, with the nodes' HTTP addresses. The database may be left
   * out. Parameters are {@code tls-ca}, {@code tls-cert}, {@code tls-key}, which are PEM files, {@code tls-server-name}, {@code cluster-id}, and
   * {@code tls=true} for TLS with the CAs that Java trusts. Throws an {@link IllegalArgumentException} if something is wrong.
   *
   * @param url the URL
   * @return the client
   */
  public static IdnodeClient fromUrl(String url) { return fromUrl(url, config -> config); }

  /**
   * The same with options of the program, which win.
   *
   * @param url the URL
   * @param options changes the configuration
   * @return the client
   */
  public static IdnodeClient fromUrl(String url, UnaryOperator<IdnodeConfig> options) {
    var settings = Settings.fromUrl(url);
    return new IdnodeClient(settings.endpoints(), options.apply(settings.config()));
  }

  /**
   * Replaces the endpoints. Calls in flight go on. What the client has learnt of its cluster stays, so the new ones must be of the same.
   *
   * @param endpoints addresses of nodes of the cluster, as {@code host:port} or URLs
   */
  public void setEndpoints(List<String> endpoints) { router.give(endpoints); }

  /** The endpoints, the leader and the state, for people. */
  @Override
  public String toString() { return "IdnodeClient[" + router + "]"; }

  private static Executor ownExecutor() {
    var waiting = new LinkedBlockingQueue<Runnable>(MAX_QUEUED);
    var pool = new ThreadPoolExecutor(CALLERS, CALLERS, 10, TimeUnit.SECONDS, waiting, work -> Background.thread(work, "idnode-call"));
    pool.allowCoreThreadTimeOut(true);
    return pool;
  }

  /**
   * Makes an id: {@code users/} a server-side id, {@code users|} an identity, empty a GUID, else the id itself.
   *
   * @param template ends with {@code /} or {@code |}, is empty, or is an id
   * @return the id
   */
  public String next(String template) { return next(template, new NextOptions()); }

  /**
   * The same with options.
   *
   * @param template ends with {@code /} or {@code |}, is empty, or is an id
   * @param options what the call is told
   * @return the id
   */
  public String next(String template, NextOptions options) { return nextN(template, 1, options).get(0); }

  /**
   * Makes n ids, 1 to 1,000,000, from a template in one call.
   *
   * @param template ends with {@code /} or {@code |}, is empty, or is an id
   * @param n how many, 1 to 1,000,000
   * @return the ids
   */
  public List<String> nextN(String template, int n) { return nextN(template, n, new NextOptions()); }

  /**
   * The same with options.
   *
   * @param template ends with {@code /} or {@code |}, is empty, or is an id
   * @param n how many, 1 to 1,000,000
   * @param options what the call is told
   * @return the ids
   */
  public List<String> nextN(String template, int n, NextOptions options) {
    checkCount(n);
    var identity = template.endsWith("|");
    var numbered = identity || template.endsWith(options.separator.isEmpty() ? "/" : options.separator);
    var semantic = !numbered && !template.isBlank();
    if (semantic) checkId(template);
    var request = Map.of(
        "template", template, "count", n, "blocksOnly", numbered && n > 1, "separator", options.separator, "claim", options.claim);
    var kind = identity || semantic && options.claim ? Call.Kind.ONCE : Call.Kind.LOCAL;
    var ids = call(kind, "IdsService/Generate", request, options.call, Answer::ids);
    if (ids.size() != n) throw internal("asked for " + n + " ids, got " + ids.size(), null);
    return ids;
  }

  /**
   * The identity with this name: a counter agreed by the cluster, which gives 1, 2, 3 and so on, without holes.
   *
   * @param name its name
   * @return the identity
   */
  public Identity identity(String name) { return identity(name, new IdentityOptions()); }

  /**
   * The same with options.
   *
   * @param name its name
   * @param options what the identity is told
   * @return the identity
   */
  public Identity identity(String name, IdentityOptions options) {
    return new Identity(this, requireNonNull(name, "name"), requireNonNull(options, "options"));
  }

  /**
   * The series of document numbers with this name. {@code idnode series define} defines it.
   *
   * @param name its name, as {@code idnode series define} has it
   * @return the series
   */
  public Series series(String name) { return new Series(this, requireNonNull(name, "name")); }

  /**
   * Lists the identities whose folded names begin with prefix, in order.
   *
   * @param prefix what they begin with; empty for all
   * @return a stream, which asks for a page when it needs it
   */
  public Stream<Counter> identities(String prefix) { return identities(prefix, new ReadOptions()); }

  /**
   * The same with options.
   *
   * @param prefix what they begin with; empty for all
   * @param options what the call is told
   * @return a stream, which asks for a page when it needs it
   */
  public Stream<Counter> identities(String prefix, ReadOptions options) {
    return pages("ListIdentities", prefix, options, page -> page.list("identities", i -> new Counter(i.text("name"), i.number("value"))));
  }

  /**
   * Records a finished id as the caller's. The first claim wins; others throw an {@link IdClaimedException}.
   *
   * @param id the id
   */
  public void claim(String id) { claim(id, new ClaimOptions()); }

  /**
   * The same with options.
   *
   * @param id the id
   * @param options what the call is told
   */
  public void claim(String id, ClaimOptions options) {
    checkId(id);
    call(Call.Kind.ONCE, "IdsService/Claim", Map.of("id", id, "separator", options.separator), options.call, answer -> true);
  }

  /**
   * Gives a claimed id free.
   *
   * @param id the id
   */
  public void release(String id) { release(id, new CallOptions()); }

  /**
   * The same with options.
   *
   * @param id the id
   * @param options what the call is told
   */
  public void release(String id, CallOptions options) {
    call(Call.Kind.ONCE, "IdsService/Release", Map.of("id", id), options, answer -> true);
  }

  /**
   * Lists the claimed ids that begin with prefix, folded, in order.
   *
   * @param prefix what they begin with; empty for all
   * @return a stream, which asks for a page when it needs it
   */
  public Stream<String> claims(String prefix) { return claims(prefix, new ReadOptions()); }

  /**
   * The same with options.
   *
   * @param prefix what they begin with; empty for all
   * @param options what the call is told
   * @return a stream, which asks for a page when it needs it
   */
  public Stream<String> claims(String prefix, ReadOptions options) {
    return pages("ListClaims", prefix, options, page -> page.texts("ids"));
  }

  /**
   * The handle of a collection's tag, which is made once and shared until it is closed.
   *
   * @param tag the collection's
   * @return the handle
   */
  public HiLo hilo(String tag) { return hilo(tag, new HiLoOptions()); }

  /**
   * The same with options. Those other than the separator and the database count only when the handle is made. A request id
   * has no place here.
   *
   * @param tag the collection's
   * @param options what the call is told
   * @return the handle
   */
  public HiLo hilo(String tag, HiLoOptions options) {
    var separator = options.separator.isEmpty() ? "/" : options.separator;
    var key = List.of(tag, separator, database(options.call));
    return handle(handles, key, options.call, HiLo::isClosed, () -> {
      return new HiLo(this, tag, RangeOptions.request(tag, config.label(), options.separator, options.firstSize), options.call);
    });
  }

  /**
   * The handle of a pool of workers, which is made once and shared until it is closed. It makes no call.
   *
   * @param pool its name, as {@code idnode snowflake define} has it
   * @return the handle
   */
  public Snowflake snowflake(String pool) { return snowflake(pool, new CallOptions()); }

  /**
   * The same with options. Those other than the database count only when the handle is made. A request id has no place here.
   *
   * @param pool its name, as {@code idnode snowflake define} has it
   * @param options what the handle's calls are told
   * @return the handle
   */
  public Snowflake snowflake(String pool, CallOptions options) {
    return handle(snowflakes, List.of(pool, database(options)), options, Snowflake::isClosed, () -> new Snowflake(this, pool, options));
  }

  private String database(CallOptions options) { return Objects.toString(options.database, config.database()); }

  private <T> T handle(Map<List<String>, T> handles, List<String> key, CallOptions options, Predicate<T> closed, Supplier<T> made) {
    checkRequestId(false, options);
    return Background.locked(lock, () -> {
      if (closing) throw IdnodeException.of(Problem.CLOSED, false, null);
      return handles.compute(key, (k, had) -> had != null && !closed.test(had) ? had : made.get());
    });
  }

  /**
   * The next HiLo id for documents of a class, as RavenDB's clients name them: OrderLine gives OrderLines/1-A. Throws an
   * {@link IllegalArgumentException} for a class without a name of its own, as an anonymous one, an array or an int.
   *
   * @param type the class
   * @return the id
   */
  public String idFor(Class<?> type) { return hilo(tagOf(type)).nextId(); }

  /**
   * The HiLo tag of a class: {@code companies} for Company, {@code OrderLines} for OrderLine.
   *
   * @param type the class
   * @return the tag
   */
  public static String tagOf(Class<?> type) { return CollectionNames.of(type); }

  /**
   * The same for a class with this simple name.
   *
   * @param name the class's simple name
   * @return the tag
   */
  public static String tagOf(String name) { return CollectionNames.of(name); }

  /**
   * Reserves the next range of a tag. Most programs are better off with {@link #hilo(String)}.
   *
   * @param tag the collection's
   * @return the range
   */
  public Range nextRange(String tag) { return nextRange(tag, new RangeOptions()); }

  /**
   * The same with options.
   *
   * @param tag the collection's
   * @param options what the call is told
   * @return the range
   */
  public Range nextRange(String tag, RangeOptions options) {
    return call(Call.Kind.ONCE, "IdsService/NextRange", options.request(tag, config.label()), options.call, GrantedRange::of);
  }

  /**
   * Gives the numbers above last back. False if they stay a hole, since the range is not the newest.
   *
   * @param tag the collection's
   * @param range what {@link #nextRange(String)} gave
   * @param last the last number that was used
   * @return whether they were given back
   */
  public boolean returnRange(String tag, Range range, long last) { return returnRange(tag, range, last, new CallOptions()); }

  /**
   * The same with options.
   *
   * @param tag the collection's
   * @param range what {@link #nextRange(String)} gave
   * @param last the last number that was used
   * @param options what the call is told
   * @return whether they were given back
   */
  public boolean returnRange(String tag, Range range, long last, CallOptions options) {
    return returnRange(tag, range, last, options, deadline(options));
  }

  boolean returnRange(String tag, Range r, long last, CallOptions options, long deadline) {
    var request = Map.of(
        "tag", tag, "low", String.valueOf(r.low()), "high", String.valueOf(r.high()), "last", String.valueOf(last), "token", r.token());
    return call(deadline, Call.Kind.ONCE, "IdsService/ReturnRange", request, options, answer -> answer.flag("returned"));
  }

  // Of a handle, whose numbers are a gap if they were not taken back.
  void giveBack(String tag, Range r, long last, CallOptions options, long deadline) {
    if (!returnRange(tag, r, last, options, deadline)) router.tell(Event.Kind.GAP, "", 0, 0, null);
  }

  /**
   * Makes a call in the background, in a thread of the client's executor: {@code ids.async(ids.identity("invoices")::next)}.
   * The time of a call begins now, and not when a thread has taken it up. If the call fails, the future has its {@link IdnodeException}.
   * It is an {@link OverloadedException}, and nothing happened, if 10,000 others wait for a thread, if the program's executor takes no more, or
   * if no thread came within the client's timeout. What ran out of time has a {@link java.util.concurrent.TimeoutException} among its causes.
   *
   * <p>Cancelling the future, or completing it in another way, as {@code orTimeout} does, leaves out a call that was not
   * begun, and interrupts one that was: that one may take effect, and what it has taken is a hole, unless the call was given a
   * request id by which it is made again. Cancelling a future made from this one does neither.
   *
   * @param <T> what the call returns
   * @param call makes the call
   * @return the outcome to come
   */
  public <T> CompletableFuture<T> async(Callable<T> call) {
    requireNonNull(call, "call");
    var future = new CompletableFuture<T>();
    var ended = new AtomicBoolean();
    var begun = System.nanoTime();
    var waits = new CompletableFuture<Void>().orTimeout(config.timeout().toNanos(), TimeUnit.NANOSECONDS); // For a thread.
    var task = new FutureTask<Void>(() -> {
      if (!waits.complete(null)) return null; // It waited for too long.
      BEGUN.set(begun);
      try {
        var got = call.call();
        ended.set(true);
        future.complete(got);
      } catch (Throwable e) {
        ended.set(true);
        future.completeExceptionally(e);
      } finally {
        BEGUN.remove();
      }
      return null;
    });
    future.whenComplete((got, e) -> {
      waits.complete(null);
      if (!ended.get()) task.cancel(true);
    });
    waits.exceptionally(late -> {
      future.completeExceptionally(overloaded("no thread was free for the call in its time", late));
      return null;
    });
    try {
      executor.execute(task);
    } catch (RejectedExecutionException | OutOfMemoryError e) { // The latter if no thread can be started.
      ended.set(true);
      var full = overloaded(executor == config.executor() ? "the executor takes no more calls" : MAX_QUEUED + " calls wait for a thread", e);
      future.completeExceptionally(router.closed ? IdnodeException.of(Problem.CLOSED, false, e) : full);
    }
    return future;
  }

  private static IdnodeException overloaded(String message, Throwable cause) {
    return IdnodeException.of(new Problem(message, "resource_exhausted", "OVERLOADED"), false, cause);
  }

  /**
   * Gives the unused numbers and windows of all handles back. It takes no longer than the client's timeout, and an interrupt does not end it. An exception
   * says that some were not given back, or may not have been, and nothing of those whose grant has an unknown outcome; the client is closed all the same.
   * Calls in flight end with a {@link ClosedException}, or with the outcome of the try that they are in.
   */
  @Override
  public void close() {
    var open = new ArrayList<LongConsumer>();
    Background.locked(lock, () -> {
      closing = true;
      for (var handle : handles.values()) open.add(handle::close);
      for (var handle : snowflakes.values()) open.add(handle::close);
      return null;
    });
    try {
      closeAll(open, deadline(new CallOptions()));
    } finally {
      router.close();
      if (executor != config.executor()) ((ThreadPoolExecutor) executor).shutdown();
    }
  }

  // Closes handles side by side. Threads of its own do, as an interrupt of the caller must not lose what they hold.
  static void closeAll(List<LongConsumer> handles, long deadline) {
    var open = new ConcurrentLinkedQueue<>(handles);
    var failed = new ConcurrentLinkedQueue<IdnodeException>();
    var closers = Math.min(open.size(), CLOSERS);
    var closed = new CountDownLatch(closers);
    for (int i = 0; i < closers; i++) {
      try {
        Background.thread(() -> close(open, deadline, failed, closed), "idnode-close").start();
      } catch (OutOfMemoryError e) { // No thread can be started.
        close(open, deadline, failed, closed);
      }
    }
    if (!Background.awaitAnyway(closed, deadline + CLOSE_SLACK)) throw IdnodeException.of(Problem.LATE, true, Background.timeout(null));
    if (!failed.isEmpty()) throw failed.peek().again();
  }

  private static void close(Queue<LongConsumer> open, long deadline, Queue<IdnodeException> failed, CountDownLatch closed) {
    for (LongConsumer handle; (handle = open.poll()) != null; ) {
      try {
        handle.accept(deadline);
      } catch (Throwable e) { // The others are closed all the same.
        failed.add(known(e));
      }
    }
    closed.countDown();
  }

  Duration timeout(CallOptions options) { return options.timeout != null ? options.timeout : config.timeout(); }

  // The first call of those that async makes has waited for a thread in its time.
  long deadline(CallOptions options) {
    var begun = BEGUN.get();
    if (begun != null) BEGUN.remove();
    return (begun == null ? System.nanoTime() : begun) + timeout(options).toNanos();
  }

  // Of a wait for a handle that was interrupted, or was too long.
  IdnodeException gaveUp(long began) {
    if (Thread.currentThread().isInterrupted() || router.heard(began)) return IdnodeException.gaveUp();
    return IdnodeException.of(new Problem("no node has answered in time", "unavailable", "NO_ENDPOINT"), false, Background.timeout(null));
  }

  String label() { return config.label(); }

  // A handle holds what is lost if the program loses the client.
  void lent() { router.lent = true; }

  <T> T call(Call.Kind kind, String method, Map<String, ?> request, CallOptions options, Function<Answer, T> read) {
    return call(deadline(options), kind, method, request, options, read);
  }

  <T> T call(long deadline, Call.Kind kind, String method, Map<String, ?> request, CallOptions options, Function<Answer, T> read) {
    checkRequestId(kind.counted, options);
    return new Call<>(router, config, deadline, kind, method, request, options, read).make();
  }

  private record Page<T>(List<T> found, String next) {}

  private <T> Stream<T> pages(String method, String prefix, ReadOptions options, Function<Answer, List<T>> read) {
    Function<String, Page<T>> page = token -> {
      var request = new LinkedHashMap<>(options.in(Map.of("prefix", prefix, "pageSize", 1000, "pageToken", token)));
      return call(options.kind(), "IdsService/" + method, request, options.call,
          answer -> new Page<>(read.apply(answer), answer.text("nextPageToken")));
    };
    return Stream.iterate(page.apply(""), Objects::nonNull, last -> last.next.isEmpty() ? null : page.apply(last.next))
        .flatMap(last -> last.found.stream());
  }

  static void checkCount(int n) {
    if (n < 1) throw new InvalidException(new Problem("it must be at least 1", "invalid_argument", "INVALID_COUNT", "count"));
  }

  private static void checkRequestId(boolean counted, CallOptions options) {
    if (counted || options.requestId == null) return;
    throw new InvalidException(new Problem("a request id does not apply to this call", "invalid_argument", "INVALID_OPTION"));
  }

  private static void checkId(String id) {
    if (!id.startsWith("/")) return;
    throw new InvalidException(new Problem("an id must not begin with /", "invalid_argument", "INVALID_ID", "id"));
  }

  // What a call has thrown, whatever it is.
  static IdnodeException known(Throwable e) { return e instanceof IdnodeException known ? known : internal(e.toString(), e); }

  static IdnodeException internal(String message, Throwable cause) {
    return IdnodeException.of(new Problem(message, "internal", ""), false, cause);
  }
}
