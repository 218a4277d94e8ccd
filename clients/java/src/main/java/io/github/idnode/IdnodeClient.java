package io.github.idnode;

import java.io.*;
import java.net.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import javax.net.ssl.*;

/**
 * A client of idnode, which hands out ids that are unique across a cluster.
 *
 * <pre>{@code
 * try (var ids = new IdnodeClient(List.of("a:7402", "b:7402", "c:7402"))) {
 *   ids.next("invoices|");                     // "invoices/1"
 *   ids.identity("invoices").next();           // 2
 *   ids.hilo("users").nextId();                // "users/1-A"
 *   ids.series("bills").take(List.of("4711")); // the number of document 4711
 * }
 * }</pre>
 *
 * It is one file that needs nothing but Java 17, and calls the API as JSON over HTTP. It is safe for concurrent use: make
 * one and share it. Every method that calls the cluster throws an {@link IdnodeException}. An interrupt ends the call.
 */
@SuppressWarnings("serial") // Of exceptions.
public final class IdnodeClient implements AutoCloseable {
  private static final long MS = 1_000_000; // Times are in nanoseconds.
  private static final long CONNECT_TIMEOUT = 1500 * MS;
  private static final long IDLE_TIMEOUT = 60_000 * MS; // Shorter than the two minutes after which a node closes an idle connection.
  private static final long FIRST_PAUSE = 25 * MS; // Between tries, once every endpoint had its turn.
  private static final long LONGEST_PAUSE = 400 * MS;
  private static final int MAX_OVERLOADS = 3; // More tries would only keep an overload going.
  private static final long LOOK_AFTER = 5000 * MS; // How old what is known of the leader may get.
  private static final long LOOK_SOON = 1000 * MS; // The same while no leader is known.
  private static final long LOOK_AGAIN = 200 * MS; // The least time between two looks, however much fails.
  private static final long LOOK_TIMEOUT = 1000 * MS;
  private static final long SLOW = 300 * MS; // When a try without an answer asks whether its node is silent to all.
  private static final long SILENT = 200 * MS; // How long the node has to say that it is not.
  private static final long GREET_TIMEOUT = 2000 * MS; // Connect, TLS and an answer over a long way.
  private static final long GREETED = 30_000 * MS; // Unused for longer, an address may have become another's.
  private static final long TIMEOUT_SLACK = 100 * MS; // How much longer than its time a try may take at the most.
  private static final long DISTRUST = 2000 * MS; // How long a node that failed is asked only if no other is left.
  private static final int CLOSERS = 16; // How many handles are closed side by side.
  private static final long FETCH_PAUSE = 100 * MS; // After a prefetch that failed.
  private static final long LONGEST_FETCH_PAUSE = 10_000 * MS;

  private static final RequestId OWN = new RequestId("", null); // Stands for an id that the client makes.

  private final Config config;
  private final Router router;
  private final Map<List<String>, HiLo> handles = new HashMap<>();
  private boolean closing; // Guarded by handles.

  /**
   * What a client may be told beside its endpoints.
   *
   * @param database whose ids are given; empty means {@code default}
   * @param tls trusts the cluster's CA and holds the client's certificate, see {@link #tls}; null for none
   * @param timeout bounds every call with all its tries
   * @param tryTimeout bounds one try at one node
   * @param label is kept with each HiLo range, for people; at most 64 bytes
   */
  public record Config(String database, SSLContext tls, Duration timeout, Duration tryTimeout, String label) {
    public Config() { this("", null, Duration.ofSeconds(10), Duration.ofSeconds(3), ""); }
    public Config withDatabase(String to) { return new Config(to, tls, timeout, tryTimeout, label); }
    public Config withTls(SSLContext to) { return new Config(database, to, timeout, tryTimeout, label); }
    public Config withTimeout(Duration to) { return new Config(database, tls, to, tryTimeout, label); }
    public Config withTryTimeout(Duration to) { return new Config(database, tls, timeout, to, label); }
    public Config withLabel(String to) { return new Config(database, tls, timeout, tryTimeout, to); }
  }

  /** Makes a call count once: an id of 1 to 64 bytes, unique per database and principal. Since is null before a first try. */
  public record RequestId(String id, Long since) implements Serializable {
    private Map<String, String> fields() { return since == null ? Map.of("id", id) : Map.of("id", id, "retrySince", since.toString()); }
  }

  /** What single calls may be told. Each call's description names those that it takes; others are refused. */
  public static final class Options {
    private final Map<String, Object> fields = new LinkedHashMap<>();
    private RequestId requestId;

    private Options with(String name, Object value) { fields.put(name, value); return this; }
    /** Stands between the parts of ids instead of {@code /}. */
    public Options separator(String separator) { return with("separator", separator); }
    /** Records a finished id in the cluster as taken. */
    public Options claim() { return with("claim", true); }
    /** Sets exactly the value, also a lower one: values may then come twice. */
    public Options force() { return with("force", true); }
    /** Only if this is the current value; otherwise the call throws a {@link ConcurrencyException}. */
    public Options expected(long value) { return with("expected", String.valueOf(value)); }
    /** Lets the identity start at 1 again: values come twice. */
    public Options forget() { return with("forget", true); }
    /** Reads what the node has applied, which may be old. */
    public Options stale() { return with("consistency", "CONSISTENCY_STALE"); }
    /** The first range's size of a HiLo handle, or the exact size of {@link #nextRange}. */
    public Options size(int size) { return with("size", size); }
    /** The values of a series' format, as {@code {"branch": "BERLIN"}}. */
    public Options values(Map<String, String> values) { return with("values", Map.copyOf(values)); }
    /** The document's date, as {@code 2026-12-31}; without it, the present day in the series' zone. */
    public Options date(String date) { return with("date", date); }
    /** Stored with each new number of a series, at most 64 bytes. */
    public Options label(String label) { return with("label", label); }
    /** Replaces the time that the series' definition gives: at least a minute, at most that. */
    public Options expiresIn(Duration time) {
      return with("expiresIn", String.format(Locale.ROOT, "%d.%09ds", time.toSeconds(), time.getNano()));
    }

    /** The caller's own. The same call with it counts once. */
    public Options requestId(String id) { return requestId(new RequestId(id, null)); }
    /** That of an error. */
    public Options requestId(RequestId id) { requestId = id; return this; }

    private Map<String, Object> in(Map<String, Object> request, String... known) {
      var given = new ArrayList<>(fields.keySet());
      if (requestId != null) given.add("requestId");
      if (!List.of(known).containsAll(given)) {
        throw new IllegalArgumentException("this call takes " + List.of(known) + ", not " + given);
      }
      var whole = new LinkedHashMap<>(request);
      whole.putAll(fields);
      return whole;
    }
  }

  /** A client without TLS, with the usual timeouts. */
  public IdnodeClient(List<String> endpoints) { this(endpoints, new Config()); }

  /** Makes no call yet. The endpoints are HTTP addresses of nodes of one cluster, as {@code host:port} or URLs. */
  public IdnodeClient(List<String> endpoints, Config config) {
    if (endpoints.isEmpty()) throw new IllegalArgumentException("endpoints is a list of at least one address");
    if (Stream.of(config.timeout, config.tryTimeout).anyMatch(t -> t.isZero() || t.isNegative())) {
      throw new IllegalArgumentException("a timeout is above zero");
    }
    this.config = config;
    router = new Router(endpoints, config.tls);
  }

  /** Reads PEM files: the cluster's CA, and the client's certificate and PKCS #8 key. */
  public static SSLContext tls(Path ca, Path certificate, Path key) throws IOException, GeneralSecurityException {
    var store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    for (var trusted : certificates(ca)) store.setCertificateEntry("ca" + store.size(), trusted);
    var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(store);
    var found = Pattern.compile("-----BEGIN PRIVATE KEY-----(.*?)-----END", Pattern.DOTALL).matcher(Files.readString(key));
    if (!found.find()) throw new InvalidKeySpecException(key + " holds no PRIVATE KEY; openssl pkcs8 -topk8 -nodes makes one");
    var spec = new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(found.group(1)));
    var own = KeyStore.getInstance(KeyStore.getDefaultType());
    own.load(null, null);
    var chain = certificates(certificate).toArray(new Certificate[0]);
    own.setKeyEntry("client", KeyFactory.getInstance(chain[0].getPublicKey().getAlgorithm()).generatePrivate(spec), new char[0], chain);
    var keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
    keys.init(own, new char[0]);
    var context = SSLContext.getInstance("TLS");
    context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
    return context;
  }

  private static List<Certificate> certificates(Path file) throws IOException, GeneralSecurityException {
    return List.copyOf(CertificateFactory.getInstance("X.509").generateCertificates(new ByteArrayInputStream(Files.readAllBytes(file))));
  }

  /** Makes an id: {@code users/} a server-side id, {@code users|} an identity, empty a GUID, else the id itself. */
  public String next(String template) { return nextN(template, 1, new Options()).get(0); }

  /** Makes n ids, 1 to 1,000,000, from a template in one call. Takes separator, claim and requestId. */
  public List<String> nextN(String template, int n, Options options) {
    checkCount(n);
    var separator = (String) options.fields.getOrDefault("separator", "");
    boolean identity = template.endsWith("|"), numbered = identity || template.endsWith(separator.isEmpty() ? "/" : separator);
    var semantic = !numbered && !template.isBlank();
    if (semantic) checkId(template);
    var request = options.in(Map.of("template", template, "count", n, "blocksOnly", numbered && n > 1), "separator", "claim", "requestId");
    // What the others take comes from a supply in which holes do not matter.
    var ids = identity || semantic && options.fields.containsKey("claim")
        ? once("Generate", request, options, Answer::ids)
        : invoke("IdsService/Generate", request, false, false, null, deadline(), Answer::ids);
    if (ids.size() != n) throw internal("asked for " + n + " ids, got " + ids.size());
    return ids;
  }

  /** The identity with this name: a counter agreed by the cluster, which gives 1, 2, 3 and so on, without holes. */
  public Identity identity(String name) { return new Identity(name); }

  /** The series of document numbers with this name. {@code idnode series define} defines it. */
  public Series series(String name) { return new Series(name); }

  /** Lists the identities whose folded names begin with prefix, in order. Takes stale. */
  public Stream<Counter> identities(String prefix, Options options) {
    return pages("ListIdentities", prefix, options, page -> page.list("identities", i -> new Counter(i.text("name"), i.number("value"))));
  }

  /** Records a finished id as the caller's. The first claim wins; others throw an {@link IdClaimedException}. */
  public void claim(String id) { claim(id, new Options()); }

  /** The same. Takes separator and requestId. */
  public void claim(String id, Options options) {
    checkId(id);
    once("Claim", options.in(Map.of("id", id), "separator", "requestId"), options, answer -> true);
  }

  /** Gives a claimed id free. */
  public void release(String id) { release(id, new Options()); }

  /** The same. Takes requestId. */
  public void release(String id, Options options) { once("Release", options.in(Map.of("id", id), "requestId"), options, answer -> true); }

  /** Lists the claimed ids that begin with prefix, folded, in order. Takes stale. */
  public Stream<String> claims(String prefix, Options options) {
    return pages("ListClaims", prefix, options, page -> page.texts("ids"));
  }

  /** The handle of a collection's tag, which is made once and shared from then on. */
  public HiLo hilo(String tag) { return hilo(tag, new Options()); }

  /** The same. Takes separator and size, which count when the handle is made. */
  public HiLo hilo(String tag, Options options) {
    var first = options.in(Map.of("tag", tag, "label", config.label), "separator", "size");
    var separator = (String) first.getOrDefault("separator", "");
    synchronized (handles) {
      if (closing) throw new ClosedException();
      return handles.computeIfAbsent(List.of(tag, separator.isEmpty() ? "/" : separator), key -> new HiLo(first));
    }
  }

  /** The next HiLo id for documents of a class, as RavenDB's clients name them: OrderLine gives OrderLines/1-A. */
  public String idFor(Class<?> type) { return hilo(collectionOf(type.getSimpleName())).nextId(); }

  /** Reserves the next range of a tag. Most programs are better off with {@link #hilo}. Takes separator, size and requestId. */
  public Range nextRange(String tag, Options options) {
    var request = options.in(Map.of("tag", tag, "label", config.label), "separator", "size", "requestId");
    return once("NextRange", request, options, IdnodeClient::range);
  }

  /** Gives the numbers above last back. False if they stay a hole, since the range is not the newest. */
  public boolean returnRange(String tag, Range range, long last) { return returnRange(tag, range, last, deadline()); }

  private boolean returnRange(String tag, Range r, long last, long deadline) {
    var request = Map.of(
        "tag", tag, "low", String.valueOf(r.low), "high", String.valueOf(r.high), "last", String.valueOf(last), "token", r.token);
    return invoke("IdsService/ReturnRange", request, true, false, OWN, deadline, answer -> answer.flag("returned"));
  }

  /**
   * Gives the unused numbers of all handles back. It takes no longer than the client's timeout. An exception says that
   * numbers could not be given back; the client is closed all the same.
   */
  @Override
  public void close() {
    var open = new ConcurrentLinkedQueue<HiLo>();
    synchronized (handles) {
      closing = true;
      open.addAll(handles.values());
    }
    var deadline = deadline();
    var failed = new ConcurrentLinkedQueue<IdnodeException>();
    var closers = Math.min(open.size(), CLOSERS);
    var closed = new CountDownLatch(closers);
    for (int i = 0; i < closers; i++) {
      background(() -> {
        for (HiLo handle; (handle = open.poll()) != null; ) {
          try {
            handle.close(deadline);
          } catch (IdnodeException e) {
            failed.add(e);
          }
        }
        closed.countDown();
      }, "idnode-close");
    }
    await(closed, deadline + TIMEOUT_SLACK);
    router.closed = true;
    router.nodes.forEach(Node::close);
    if (!failed.isEmpty()) throw failed.peek().again();
  }

  private long deadline() { return System.nanoTime() + config.timeout.toNanos(); }

  private record Page<T>(List<T> found, String next) {}

  private <T> Stream<T> pages(String method, String prefix, Options options, Function<Answer, List<T>> read) {
    var request = options.in(Map.of("prefix", prefix, "pageSize", 1000), "consistency");
    Function<String, Page<T>> page = token -> {
      request.put("pageToken", token);
      return ask("IdsService/" + method, request, answer -> new Page<>(read.apply(answer), answer.text("nextPageToken")));
    };
    return Stream.iterate(page.apply(""), Objects::nonNull, last -> last.next.isEmpty() ? null : page.apply(last.next))
        .flatMap(last -> last.found.stream());
  }

  // Makes a call that only reads.
  private <T> T ask(String method, Map<String, Object> request, Function<Answer, T> read) {
    return invoke(method, request, true, false, null, deadline(), read);
  }

  private <T> T once(String method, Map<String, Object> request, Options options, Function<Answer, T> read) {
    return invoke("IdsService/" + method, request, true, false, options.requestId != null ? options.requestId : OWN, deadline(), read);
  }

  // Makes tries at changing nodes until one gives a final answer or the time is over. With changes, the call may be repeated
  // without a request id, but what a lost try has done matters.
  private <T> T invoke(
      String method, Map<String, ?> fields, boolean toLeader, boolean changes, RequestId id, long deadline, Function<Answer, T> read) {
    var request = new LinkedHashMap<String, Object>(fields);
    request.put("database", config.database);
    var renewable = id == OWN; // No other call has sent its id.
    if (renewable) id = new RequestId(UUID.randomUUID().toString(), null);
    // Whoever names an index has made the call before: until the cluster decides it, its outcome is what it was.
    var repeats = id != null && id.since != null;
    var index = router.index(deadline, toLeader, id != null);
    // The first try says it too: the network may hold it up until its retry was forgotten.
    if (id != null && id.since == null && index > 0) id = new RequestId(id.id, index);
    Node node = null;
    Failure told = null;
    int overloads = 0, foreign = 0;
    boolean lost = false, unknown = repeats; // A try of this call, or of any, may have taken effect.
    for (int tries = 1; ; tries++) {
      if (router.closed) throw unknown && told != null ? told.exception(true, id) : new ClosedException();
      if (id != null) request.put("requestId", id.fields());
      node = router.route(toLeader, node);
      Failure last;
      var tried = node;
      BooleanSupplier silent = () -> router.silent(tried);
      try {
        if (!node.greeted()) router.greet(node, Math.min(config.tryTimeout.toNanos(), deadline - System.nanoTime()), silent); // Whatever it is, it gets no call.
        var got = node.call(method, request, Math.min(config.tryTimeout.toNanos(), deadline - System.nanoTime()),
            answer -> Map.entry(answer.number("logIndex"), read.apply(answer)), silent);
        node.suspectUntil = System.nanoTime();
        node.greetedUntil = System.nanoTime() + GREETED;
        router.saw(got.getKey(), false);
        return got.getValue();
      } catch (Failure failure) {
        last = failure;
      }
      // A node that answered tells more than one that was not reached.
      if (told == null || !last.problem.reason.equals("NO_ENDPOINT")) told = last;
      lost |= last.effect == Effect.UNKNOWN && (changes || id != null);
      unknown = lost || repeats && !last.decided();
      if (id != null) {
        if (id.since == null) id = new RequestId(id.id, 0L);
        // The index named was forgotten before the first try came. A copy of that try which comes late names the old index.
        if (renewable && !unknown && last.problem.reason.equals("REQUEST_ID_EXPIRED") && router.latest(deadline, 0, look -> look.done) > id.since) {
          renewable = false;
          id = new RequestId(id.id, router.newest);
          node = null;
          told = null;
          continue;
        }
      }
      var overloaded = last.problem.reason.equals("OVERLOADED");
      if (overloaded) overloads++;
      // What answers is no node: a mistake if none ever did, or it is another cluster's. Else a proxy may say so for a while.
      var mistaken = last.problem.reason.equals("OTHER_CLUSTER") || router.newest == 0;
      foreign = last.foreign && last.effect != Effect.UNKNOWN && mistaken ? foreign + 1 : 0;
      var pause = overloaded ? Math.max(last.pause, FIRST_PAUSE) : pause(tries - router.nodes.size());
      var over = System.nanoTime() + pause - deadline >= 0;
      var refused = last.effect == Effect.REFUSED || overloads > MAX_OVERLOADS || foreign >= router.nodes.size();
      if (refused || over || !sleep(pause)) throw told.exception(unknown, id);
      if (!overloaded) router.failed(node);
    }
  }

  // The time until the next try: none while there are endpoints that were not tried yet.
  private static long pause(int round) {
    return round < 0 ? 0 : jitter(Math.min(FIRST_PAUSE << Math.min(round, 10), LONGEST_PAUSE));
  }

  private static long jitter(long pause) { return ThreadLocalRandom.current().nextLong(pause / 2, pause + 1); }

  // False if the thread is interrupted.
  private static boolean sleep(long nanos) {
    LockSupport.parkNanos(nanos);
    return !Thread.currentThread().isInterrupted();
  }

  // False if the time is over or the thread is interrupted.
  private static boolean await(CountDownLatch latch, long end) {
    try {
      return latch.await(end - System.nanoTime(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private static void background(Runnable work, String name) {
    var thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
  }

  private static void checkCount(int n) {
    if (n < 1) throw new InvalidException(new Problem("it must be at least 1", "invalid_argument", "INVALID_COUNT", "count", null));
  }

  private static void checkId(String id) {
    if (!id.startsWith("/")) return;
    throw new InvalidException(new Problem("an id must not begin with /", "invalid_argument", "INVALID_ID", "id", null));
  }

  private static IdnodeException internal(String message) { return new IdnodeException(new Problem(message, "internal", "")); }

  /** An identity in a listing: its folded name, and the last value taken. */
  public record Counter(String name, long value) {}

  /** A run of consecutive values, first and last included. */
  public record Block(long first, long last) {}

  /** A counter agreed by the cluster. */
  public final class Identity {
    private final String name;

    private Identity(String name) { this.name = name; }

    /** Takes the next value. */
    public long next() { return nextN(1, new Options()).get(0).first; }

    /** Takes the next n values: one block, or several where claimed ids lie between. Takes separator and requestId. */
    public List<Block> nextN(int n, Options options) {
      checkCount(n);
      return once("NextIdentity", options.in(Map.of("name", name, "count", n), "separator", "requestId"), options,
          answer -> answer.list("blocks", b -> new Block(b.number("first"), b.number("last"))));
    }

    /** Reads the last value taken. Throws a {@link NotFoundException} if none ever was. Takes stale. */
    public long get(Options options) {
      var request = options.in(Map.of("name", name), "consistency");
      return ask("IdsService/GetIdentity", request, answer -> answer.get("identity").number("value"));
    }

    /** Raises the last value taken to value, and returns what it is now. Takes force, expected and requestId. */
    public long seed(long value, Options options) {
      var request = options.in(Map.of("name", name, "value", String.valueOf(value)), "force", "expected", "requestId");
      return once("SeedIdentity", request, options, answer -> answer.number("value"));
    }

    /** Hides the identity and returns its last value. Takes forget and requestId. */
    public long delete(Options options) {
      return once("DeleteIdentity", options.in(Map.of("name", name), "forget", "requestId"), options, answer -> answer.number("value"));
    }
  }

  /** The number that a call on a series means: a key, and its number; 0 is whatever number the key has. */
  public record Key(String key, long number) {
    public static List<Key> of(String... keys) { return Arrays.stream(keys).map(key -> new Key(key, 0)).toList(); }
  }

  /**
   * The number of a document.
   *
   * @param text the number in the series' format
   * @param scope the period, where numbers begin again, and the values of the format
   * @param number the number in its scope
   * @param state {@code open}, {@code confirmed}, {@code voided}, {@code released} or {@code unknown}
   * @param overdue whether it is open and its time has ended
   * @param date the document's, as {@code 2026-12-31}
   * @param reason that of a voided number
   */
  public record DocumentNumber(
      String key, String text, List<String> scope, long number, String state, boolean overdue, String date, String label, String reason) {
    /** What confirm, void and release take. */
    public Key bound() { return new Key(key, number); }

    private static DocumentNumber of(Answer n) {
      var state = n.text("state").replace("NUMBER_STATE_", "").toLowerCase(Locale.ROOT);
      return new DocumentNumber(
          n.text("key"), n.text("text"), n.texts("scope"), n.number("number"), state, n.flag("overdue"), n.text("date"), n.text("label"),
          n.text("reason"));
    }
  }

  /**
   * Gives documents numbers without a hole: a number belongs to a document's key, and asking again gives the same one.
   *
   * <p>Store the document without a number, take a number for the document's own id, store the number, and confirm it.
   * Every call may be made again: it has no request id, and one that failed without being refused may have happened.
   */
  public final class Series {
    private final String name;

    private Series(String name) { this.name = name; }

    /** Gives each of 1 to 1,000 keys a number, or none. A key that has one keeps it, also a voided one: look at its state. */
    public List<DocumentNumber> take(List<String> keys) { return take(keys, new Options()); }

    /** The same. Takes values, date, label and expiresIn. */
    public List<DocumentNumber> take(List<String> keys, Options options) {
      return numbers("TakeNumbers", options.in(Map.of("keys", keys), "values", "date", "label", "expiresIn"));
    }

    /** Makes the numbers of documents final, or none. */
    public List<DocumentNumber> confirm(List<Key> keys) { return numbers("ConfirmNumbers", Map.of("keys", bound(keys))); }

    /** Says that open numbers belong to no document, and why, in 1 to 128 bytes. */
    public List<DocumentNumber> voidNumbers(List<Key> keys, String reason) {
      return numbers("VoidNumbers", Map.of("keys", bound(keys), "reason", reason));
    }

    /** Gives open numbers back: another key may get them, or they are voided, as the series' policy says. */
    public List<DocumentNumber> release(List<Key> keys) { return numbers("ReleaseNumbers", Map.of("keys", bound(keys))); }

    /** Reads the number of a key. Throws a {@link NotFoundException} if it has none. Takes stale. */
    public DocumentNumber find(String key, Options options) {
      var request = options.in(Map.of("series", name, "key", key), "consistency");
      return ask("SeriesService/WhoHas", request, answer -> DocumentNumber.of(answer.get("number")));
    }

    private List<DocumentNumber> numbers(String method, Map<String, ?> fields) {
      var request = new LinkedHashMap<String, Object>(fields);
      request.put("series", name);
      return invoke("SeriesService/" + method, request, true, true, null, deadline(), answer -> answer.list("numbers", DocumentNumber::of));
    }

    private static List<Map<String, String>> bound(List<Key> keys) {
      return keys.stream().map(k -> Map.of("key", k.key, "number", String.valueOf(k.number))).toList();
    }
  }

  /**
   * A HiLo range. Prefix and node tag belong to its numbers alone.
   *
   * @param size the size granted
   * @param at the cluster's time of the range
   * @param fromReserve the numbers may lie below those of the last range
   * @param token proves that the range is the caller's when it is returned
   */
  public record Range(String prefix, String nodeTag, long low, long high, long size, String at, boolean fromReserve, String token) {}

  private static Range range(Answer r) {
    return new Range(
        r.text("prefix"), r.text("nodeTag"), r.number("low"), r.number("high"), r.number("size"), r.maybe("rangeAt"), r.flag("fromReserve"),
        r.text("token"));
  }

  /** A number of a HiLo range. {@code toString} gives its id. */
  public record HiLoNumber(long value, String prefix, String nodeTag) {
    @Override
    public String toString() { return prefix + value + (nodeTag.isEmpty() ? "" : "-" + nodeTag); }
  }

  /**
   * Gives the ids of one collection, without a call for most of them; meant to be shared. The next range is fetched in the
   * background once half of the current one is used.
   */
  public final class HiLo {
    private final String tag;
    private Map<String, Object> request; // The next one. It belongs to the fetch in progress.
    private RequestId again; // That of a fetch whose outcome is unknown.
    private long lastMax;
    private Range current, ahead;
    private long left; // How many numbers of current are not taken.
    private boolean fetching, closed, returned;
    private int failures;
    private IdnodeException error; // That of the newest failure.
    private long pause = FETCH_PAUSE, resume = System.nanoTime();

    private HiLo(Map<String, Object> first) { tag = (String) first.get("tag"); request = first; }

    /** Takes a number and returns its id, for example {@code users/65-A}. */
    public String nextId() { return next().toString(); }

    /** Takes n numbers and returns their ids. They need not be consecutive. An exception has the ids that were taken before it. */
    public List<String> nextIds(int n) {
      checkCount(n);
      var ids = new ArrayList<String>();
      try {
        while (ids.size() < n) ids.add(nextId());
      } catch (IdnodeException e) {
        e.ids = List.copyOf(ids);
        throw e;
      }
      return ids;
    }

    /** Takes a number. It waits only if none is left of the ranges at hand. */
    public synchronized HiLoNumber next() {
      for (var before = failures; ; ) {
        if (closed) throw new ClosedException();
        if (left > 0) {
          var number = new HiLoNumber(current.high - --left, current.prefix, current.nodeTag);
          if (number.value - current.low >= (current.high - current.low) / 2 && System.nanoTime() - resume >= 0) fetch();
          return number;
        }
        if (ahead != null) {
          current = ahead;
          left = current.high - current.low + 1;
          ahead = null;
        } else if (failures != before) {
          throw error.again();
        } else {
          fetch();
          if (!await(System.nanoTime() + Long.MAX_VALUE)) throw new IdnodeException(new Problem("interrupted", "canceled", ""));
        }
      }
    }

    /** Returns the unused numbers to the cluster. Afterwards the handle throws a {@link ClosedException}. */
    public void close() { close(deadline()); }

    private void close(long deadline) {
      Range newest, rest;
      synchronized (this) {
        if (closed) { // The first to close gives the numbers back; others wait for it.
          while (!returned && await(deadline)) {}
          return;
        }
        closed = true;
        notifyAll();
        while (fetching && await(deadline)) {} // A range that is on its way is given back too.
        newest = ahead;
        rest = left > 0 ? current : null;
      }
      try { // Only the newest range of a tag can be given back, so the one ahead goes first.
        if (newest != null) returnRange(tag, newest, newest.low - 1, deadline);
      } finally {
        giveBack(rest, deadline);
      }
    }

    private void giveBack(Range rest, long deadline) {
      try {
        if (rest != null) returnRange(tag, rest, rest.high - left, deadline);
      } finally {
        synchronized (this) {
          returned = true;
          notifyAll();
        }
      }
    }

    // False if the time is over or the thread is interrupted. The caller holds the lock.
    private boolean await(long deadline) {
      try {
        var time = deadline - System.nanoTime();
        if (time > 0) TimeUnit.NANOSECONDS.timedWait(this, Math.max(time, MS));
        return time > 0;
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return false;
      }
    }

    // Starts to fetch a range unless there is one, or one is coming. The caller holds the lock.
    private void fetch() {
      if (fetching || ahead != null) return;
      background(this::fetchOne, "idnode-hilo-" + tag); // It needs the lock to end. Without a thread, the caller gets the error.
      fetching = true;
    }

    private Range fetch(RequestId id) {
      try {
        return once("NextRange", request, new Options().requestId(id), IdnodeClient::range);
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
        if (got.low < 1 || got.high < got.low || got.low <= lastMax && !got.fromReserve) {
          throw internal("a wrong range: " + got.low + " to " + got.high + " after " + lastMax);
        }
      } catch (Throwable e) { // The callers that wait must have it, whatever it is: also that no thread could be started.
        failed = e instanceof IdnodeException known ? known : internal(e.toString());
      }
      // What may have been granted is asked for again, and is no hole then.
      again = failed instanceof OutcomeUnknownException ? failed.requestId() : null;
      synchronized (this) {
        fetching = false;
        if (failed == null) {
          lastMax = Math.max(lastMax, got.high);
          request = new LinkedHashMap<>(request);
          request.remove("size");
          request.putAll(Map.of("lastSize", got.size, "lastMax", String.valueOf(lastMax)));
          if (!got.at.isEmpty()) request.put("lastRangeAt", got.at);
          ahead = got;
          pause = FETCH_PAUSE;
        } else {
          failures++;
          error = failed;
          resume = System.nanoTime() + jitter(pause);
          pause = Math.min(2 * pause, LONGEST_FETCH_PAUSE);
        }
        notifyAll();
      }
    }
  }

  // One address, and the connections to it. The JDK's HttpClient is not used: it hands each call to threads of its own, which
  // costs more than the call; a caller that waits cannot look around; and until Java 21 it keeps threads and sockets after its use.
  private static final class Node {
    private static final Pattern ENDPOINT = Pattern.compile("(?:(https?)://)?(\\[[^]\\[\\s/@]+]|[^]\\[\\s/?#@:]+):([0-9]{1,5})/?");
    final String address;
    private final String host;
    private final int port;
    private final SSLSocketFactory tls; // Null without.
    private final Deque<Connection> idle = new ConcurrentLinkedDeque<>(); // The newest first.
    private volatile boolean closed;
    volatile long suspectUntil = System.nanoTime();
    // Until when it counts as a node of the client's cluster: it answered, and no connection broke since.
    volatile long greetedUntil = System.nanoTime();

    Node(String address, SSLContext tls) {
      var found = ENDPOINT.matcher(address.strip());
      port = found.matches() ? Integer.parseInt(found.group(3)) : 0;
      if (port < 1 || port > 65535) throw new IllegalArgumentException("an endpoint is host:port, or a URL of that, not " + address);
      if (tls != null && "http".equals(found.group(1))) throw new IllegalArgumentException("the endpoint " + address + " has no TLS");
      this.address = found.group(2) + ":" + port;
      host = found.group(2).replaceAll("[\\[\\]]", "");
      this.tls = tls != null ? tls.getSocketFactory() : "https".equals(found.group(1)) ? (SSLSocketFactory) SSLSocketFactory.getDefault() : null;
    }

    boolean suspected() { return System.nanoTime() - suspectUntil < 0; }

    boolean greeted() { return System.nanoTime() - greetedUntil < 0; }

    // Makes one try, which is over early if the node is silent. What cannot be read is not an answer of a node.
    <T> T call(String method, Map<String, Object> request, long timeout, Function<Answer, T> read, BooleanSupplier silent) throws Failure {
      if (timeout <= 0) throw failure("the time was over before it could be asked", "unavailable", "NO_ENDPOINT", false, null);
      var end = System.nanoTime() + timeout;
      var connection = connection(end);
      Reply reply;
      try {
        reply = connection.post(address, method, Json.text(request), end, silent);
      } catch (IOException e) {
        connection.close();
        throw broken(e, e instanceof SSLHandshakeException); // With TLS 1.3 a certificate that the node does not trust is refused only now.
      }
      if (connection.kept) keep(connection);
      else connection.close();
      if (reply.status != 200) throw Failure.of(reply.status, reply.body);
      try {
        return read.apply(new Answer(Json.object(reply.body)));
      } catch (IllegalArgumentException e) {
        throw failure("this is not an answer of a node", "internal", "", true, e);
      }
    }

    private Connection connection(long end) throws Failure {
      for (Connection kept; (kept = idle.pollFirst()) != null; kept.close()) {
        if (System.nanoTime() - kept.since < IDLE_TIMEOUT) return kept;
      }
      try {
        var connectBy = Math.min(end, System.nanoTime() + CONNECT_TIMEOUT);
        return within(connectBy, () -> new Connection(host, port, tls, connectBy));
      } catch (IOException e) {
        throw broken(e, true);
      }
    }

    private void keep(Connection connection) {
      connection.since = System.nanoTime();
      idle.addFirst(connection);
      for (Connection last; (last = idle.peekLast()) != null && (closed || System.nanoTime() - last.since > IDLE_TIMEOUT); ) {
        if (idle.remove(last)) last.close(); // Else another call took it.
      }
    }

    void close() { closed = true; drop(); }

    private void drop() {
      for (Connection kept; (kept = idle.pollFirst()) != null; ) kept.close();
    }

    // A failure of a connection; others are likely to be broken too. Early says that nothing was sent, so nothing happened.
    private Failure broken(IOException e, boolean early) {
      greetedUntil = System.nanoTime();
      drop();
      if (Thread.currentThread().isInterrupted()) return failure("interrupted", "canceled", "", false, e);
      var noise = e instanceof ProtocolException || String.valueOf(e.getMessage()).contains("recognized SSL message"); // Neither HTTP nor TLS.
      return failure((early ? "cannot be reached: " : "") + e, "unavailable", early ? "NO_ENDPOINT" : "", noise, e);
    }

    Failure failure(String message, String code, String reason, boolean foreign, Throwable cause) {
      return new Failure(new Problem(address + ": " + message, code, reason), 0, foreign, cause);
    }
  }

  // Does in another thread what has no timeout of its own, as the look-up of a name.
  private static <T> T within(long end, Callable<T> work) throws IOException {
    var task = new FutureTask<T>(work);
    try {
      background(task, "idnode-io");
      return task.get(end - System.nanoTime(), TimeUnit.NANOSECONDS);
    } catch (ExecutionException | OutOfMemoryError e) { // The latter if no thread can be started.
      throw e.getCause() instanceof IOException known ? known : new IOException(e);
    } catch (InterruptedException | TimeoutException e) {
      if (e instanceof InterruptedException) Thread.currentThread().interrupt();
      throw new InterruptedIOException("not in time");
    }
  }

  private record Reply(int status, String body) {}

  // One connection, which carries HTTP/1.1, a call at a time. As a stream it is the answer.
  private static final class Connection extends InputStream {
    private static final int STEP = 50; // Milliseconds between two looks at what may end a call early.
    private static final int LONGEST = 32 << 20; // Bytes of an answer with its head.
    private final Socket plain, socket; // The same without TLS.
    private final InputStream answer = new BufferedInputStream(this);
    private int size; // Of what came of the answer.
    private long end, ask; // When the answer's time is over, and when to ask whether the node is silent.
    private BooleanSupplier silent;
    boolean kept; // Another call may follow.
    long since; // When the last one ended.

    Connection(String host, int port, SSLSocketFactory tls, long end) throws IOException {
      plain = connect(host, port, end);
      try {
        plain.setTcpNoDelay(true);
        socket = tls == null ? plain : tls.createSocket(plain, host, port, true);
        if (socket instanceof SSLSocket secure) {
          var parameters = secure.getSSLParameters();
          parameters.setEndpointIdentificationAlgorithm("HTTPS");
          secure.setSSLParameters(parameters);
          secure.setSoTimeout(millis(end));
          secure.startHandshake();
        }
        if (System.nanoTime() - end > 0) throw new SocketTimeoutException(); // Nobody waits for it.
      } catch (Throwable e) {
        plain.close();
        throw e;
      }
    }

    // Tries the addresses of a name in turn. Each may take its share of the time that is left.
    private static Socket connect(String host, int port, long end) throws IOException {
      var all = InetAddress.getAllByName(host);
      for (int i = 0; ; i++) {
        var socket = new Socket();
        try {
          socket.connect(new InetSocketAddress(all[i], port), millis(end) / (all.length - i) + 1);
          return socket;
        } catch (IOException e) {
          socket.close();
          if (i == all.length - 1) throw e;
        }
      }
    }

    private static int millis(long end) { return (int) Math.max((end - System.nanoTime()) / MS, 1); }

    @Override
    public void close() {
      try {
        (kept ? socket : plain).close(); // A write that is blocked holds up the close of TLS, and no other.
      } catch (IOException e) {
        // It is closed all the same.
      }
    }

    Reply post(String host, String method, String text, long until, BooleanSupplier whetherSilent) throws IOException {
      kept = false;
      size = 0;
      end = until;
      ask = System.nanoTime() + SLOW;
      silent = whetherSilent;
      var head = "POST /idnode.v1." + method + " HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/json\r\nConnect-Timeout-Ms: "
          + millis(end) + "\r\nContent-Length: " + text.getBytes(StandardCharsets.UTF_8).length + "\r\n\r\n";
      // In one piece: a reset in between would hide what a server has said that speaks no HTTP.
      var whole = (head + text).getBytes(StandardCharsets.UTF_8);
      if (whole.length < 8192) socket.getOutputStream().write(whole);
      else within(end, () -> { socket.getOutputStream().write(whole); return true; }); // A node that stands still may not take it.
      try {
        return reply();
      } catch (RuntimeException e) {
        throw new ProtocolException("this is no HTTP: " + e.getMessage());
      }
    }

    private Reply reply() throws IOException {
      var first = "";
      var status = 0;
      var headers = new HashMap<String, String>();
      for (; status < 200; status = Integer.parseInt(first.split(" ")[1])) { // One below says that another follows.
        first = line();
        headers.clear();
        for (String[] field; !(field = line().toLowerCase(Locale.ROOT).split(":", 2))[0].isEmpty(); ) headers.put(field[0], field[1].strip());
      }
      var length = headers.getOrDefault("content-length", status == 204 ? "0" : "");
      var chunked = headers.containsKey("transfer-encoding");
      var body = new ByteArrayOutputStream();
      if (chunked) {
        for (int size; (size = Integer.parseInt(line().split(";")[0].strip(), 16)) > 0; line()) body.write(exactly(size));
        while (!line().isEmpty()) {}
      } else {
        body.write(length.isEmpty() ? answer.readAllBytes() : exactly(Integer.parseInt(length)));
      }
      var ended = (chunked || !length.isEmpty()) && answer.available() == 0; // What follows belongs to no call.
      kept = ended && first.startsWith("HTTP/1.1") && !"close".equals(headers.get("connection"));
      return new Reply(status, body.toString(StandardCharsets.UTF_8));
    }

    private String line() throws IOException {
      var line = new StringBuilder();
      for (int c; (c = answer.read()) != '\n'; line.append((char) c)) if (c < 0) throw new EOFException("the connection ended");
      return line.toString().strip();
    }

    private byte[] exactly(int size) throws IOException {
      var part = answer.readNBytes(size);
      if (part.length < size) throw new EOFException("the connection ended");
      return part;
    }

    @Override
    public int read() { throw new UnsupportedOperationException(); }

    @Override
    public int read(byte[] into, int at, int most) throws IOException {
      for (; ; ) {
        if (System.nanoTime() - end >= 0) throw new SocketTimeoutException("not in time");
        try {
          socket.setSoTimeout(Math.min(millis(end), STEP));
          var got = socket.getInputStream().read(into, at, most);
          if (size == 0) { // Now: there may be no line, but a reset.
            var start = new String(into, at, Math.max(Math.min(got, 5), 0), StandardCharsets.ISO_8859_1);
            if (!"HTTP/".startsWith(start)) throw new ProtocolException("this is no HTTP: " + start);
          }
          if ((size += got) > LONGEST) throw new ProtocolException("the answer is too long");
          return got;
        } catch (SocketTimeoutException e) {
          if (Thread.currentThread().isInterrupted()) throw e;
          if (size > 0 || System.nanoTime() - ask < 0) continue;
          if (silent.getAsBoolean()) throw e;
          ask = System.nanoTime() + SLOW;
        }
      }
    }
  }

  // Knows the nodes, which of them leads, and how far the cluster's log is.
  private static final class Router {
    final List<Node> nodes;
    volatile boolean closed;
    private Node leader;
    private int home; // The endpoint for calls that need no leader.
    volatile long newest; // The newest log index of any answer.
    private String cluster; // That of the first node that answered.
    private volatile long newestAt = System.nanoTime() - LOOK_AFTER;
    private Look newestLook; // Null before the first.

    Router(List<String> addresses, SSLContext tls) {
      nodes = addresses.stream().map(address -> new Node(address, tls)).toList();
    }

    // Notes a log index. What a node has applied is as new as the answer.
    synchronized void saw(long index, boolean applied) {
      if (index > newest || applied && index == newest) {
        newest = index;
        newestAt = System.nanoTime();
      }
    }

    // The newest log index before a call. It is looked for if none, or only an old one, is known.
    long index(long deadline, boolean toLeader, boolean counted) {
      if (toLeader && newest == 0) return latest(deadline, LOOK_AGAIN, look -> look.done);
      return counted && System.nanoTime() - newestAt > LOOK_AFTER ? latest(deadline, LOOK_AGAIN, look -> look.heard) : newest;
    }

    // The same after a look, unless one is younger than age.
    long latest(long deadline, long age, Function<Look, CountDownLatch> until) {
      await(until.apply(look(age)), Math.min(System.nanoTime() + LOOK_TIMEOUT, deadline));
      return newest;
    }

    // Whether a node says nothing at all while another one does. A call that waits for it goes elsewhere then.
    //
    // To send the call elsewhere unasked, as a hedge ("The Tail at Scale", Dean and Barroso 2013), would double the load of a
    // cluster that is only slow. The question writes nothing, and all calls share it. A node that writes slowly answers it, so
    // a call is sent again for a node that stands still, and for no other reason.
    boolean silent(Node node) {
      var look = look(LOOK_AGAIN);
      if (await(look.answered.get(node), look.began + SILENT)) return false;
      return nodes.stream().anyMatch(other -> other != node && look.answered.get(other).getCount() == 0);
    }

    // The node for the next try: not that of the try before if there is another.
    synchronized Node route(boolean toLeader, Node last) {
      if (toLeader) {
        look(leader != null ? LOOK_AFTER : LOOK_SOON);
        if (leader != null && leader != last && !leader.suspected()) return leader;
      }
      var start = last == null ? home : nodes.indexOf(last) + 1;
      var order = LongStream.range(0, nodes.size()).mapToObj(i -> nodes.get((int) ((start + i) % nodes.size()))).toList();
      return order.stream().filter(node -> node != last && !node.suspected()).findFirst().orElse(order.get(0));
    }

    synchronized void failed(Node node) {
      node.suspectUntil = System.nanoTime() + DISTRUST;
      if (leader == node) leader = null;
      if (nodes.get(home) == node) home = (home + 1) % nodes.size();
      look(LOOK_AGAIN);
    }

    private record Status(String cluster, long index, boolean leads) {
      static Status of(Answer s) {
        var tag = s.text("leaderTag");
        return new Status(s.text("clusterId"), s.number("appliedIndex"), s.flag("hasQuorum") && !tag.isEmpty() && tag.equals(s.get("self").text("tag")));
      }
    }

    // Asks a node whether it leads, and is of the client's cluster. The Failure did nothing.
    boolean greet(Node node, long timeout, BooleanSupplier silent) throws Failure {
      Status status;
      try {
        status = node.call("ClusterService/GetStatus", Map.of(), Math.min(timeout, GREET_TIMEOUT), Status::of, silent);
      } catch (Failure e) {
        var p = e.problem;
        if (p.code.equals("canceled") || !p.reason.isEmpty() && !e.foreign && e.effect != Effect.UNKNOWN) throw e;
        var what = e.foreign ? node.address + " does not speak idnode's HTTP API: is it the address of --http (7402)? " : "";
        throw new Failure(new Problem(what + p.message, "unavailable", "NO_ENDPOINT"), 0, e.foreign, e.getCause());
      }
      var id = status.cluster;
      if (id.isEmpty()) throw node.failure("there is no cluster yet", "failed_precondition", "NOT_FORMED", false, null); // It may get any.
      synchronized (this) {
        if (cluster == null) cluster = id;
      }
      node.greetedUntil = System.nanoTime() + (id.equals(cluster) ? GREETED : 0);
      if (!id.equals(cluster)) {
        throw node.failure("this is a node of cluster " + id + ", and a client of cluster " + cluster, "failed_precondition", "OTHER_CLUSTER", true, null);
      }
      saw(status.index, true);
      return status.leads;
    }

    // Looks for the leader, unless a look is in progress or younger than age. Returns the newest.
    private synchronized Look look(long age) {
      var last = newestLook;
      if (last != null && (closed || last.done.getCount() > 0 || System.nanoTime() - last.began < age)) return last;
      var look = new Look(nodes);
      try {
        for (var node : nodes) background(() -> ask(look, node), "idnode-look");
      } catch (OutOfMemoryError e) { // No thread can be started: the leader stays, and no node counts as silent.
        Stream.concat(Stream.of(look.heard, look.done), look.answered.values().stream()).forEach(CountDownLatch::countDown);
      }
      newestLook = look; // The threads need the lock to end the look.
      return look;
    }

    // Asks one endpoint. The first that says of itself that it leads does; nodes hand calls on to one that is no endpoint.
    private void ask(Look look, Node node) {
      var leads = false;
      try {
        leads = greet(node, LOOK_TIMEOUT, () -> false);
        look.heard.countDown();
        look.answered.get(node).countDown();
      } catch (Failure e) {
        // A node that gives a reason, as one that is overloaded, is not silent.
        if (!e.foreign && !List.of("", "NO_ENDPOINT").contains(e.problem.reason)) look.answered.get(node).countDown();
      } finally {
        synchronized (this) {
          if ((--look.left == 0 || leads) && look.done.getCount() > 0) {
            leader = leads ? node : null;
            if (leads) node.suspectUntil = System.nanoTime();
            look.heard.countDown();
            look.done.countDown();
          }
        }
      }
    }
  }

  // One look for the leader, at all endpoints side by side.
  private static final class Look {
    final long began = System.nanoTime();
    final CountDownLatch heard = new CountDownLatch(1), done = new CountDownLatch(1); // A node has told; the leader, or every node.
    final Map<Node, CountDownLatch> answered;
    int left;

    Look(List<Node> nodes) {
      answered = nodes.stream().collect(Collectors.toMap(node -> node, node -> new CountDownLatch(1)));
      left = nodes.size();
    }
  }

  // What a failed try may have done.
  private enum Effect { NOTHING, UNKNOWN, REFUSED }

  // What went wrong: a text for people, and what an IdnodeException tells.
  private record Problem(String message, String code, String reason, String field, RequestId requestId) implements Serializable {
    Problem(String message, String code, String reason) { this(message, code, reason, "", null); }
  }

  // A failed try.
  private static final class Failure extends Exception {
    // Reasons for which another node may do better.
    static final Set<String> NOT_HERE = Set.of("OVERLOADED", "TAG_NOT_ASSIGNED", "NOT_FORMED", "TAG_NOT_MEMBER", "CORRUPT", "OTHER_CLUSTER");
    final Problem problem;
    final long pause; // That the node asks for.
    final boolean foreign; // What answered is no node of the cluster.
    final Effect effect;

    Failure(Problem problem, long pause, boolean foreign, Throwable cause) {
      super(problem.message, cause, false, false);
      this.problem = problem;
      this.pause = pause;
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
      if (answer.maybe("code").isEmpty()) return new Failure(new Problem("HTTP status " + status, code, ""), 0, foreign, null);
      String reason = "", field = "";
      long pause = 0;
      for (var detail : answer.objects("details").map(d -> d.object("debug")).toList()) {
        if (detail.maybe("domain").equals("idnode")) reason = detail.maybe("reason");
        foreign &= reason.isEmpty();
        for (var violation : detail.objects("fieldViolations").toList()) field = violation.maybe("field");
        var delay = detail.maybe("retryDelay");
        if (delay.matches("[0-9.]+s")) pause = (long) (Double.parseDouble(delay.replace("s", "")) * 1000 * MS);
      }
      return new Failure(new Problem(answer.maybe("message"), answer.maybe("code"), reason, field, null), pause, foreign, null);
    }

    private Effect effect() {
      var ours = !problem.reason.isEmpty(); // Else it is not an answer of idnode's, or no answer at all.
      if (problem.reason.equals("OUTCOME_UNKNOWN")) return Effect.UNKNOWN;
      if (NOT_HERE.contains(problem.reason) || problem.code.equals(ours ? "unavailable" : "unimplemented")) return Effect.NOTHING;
      if (ours) return problem.code.equals("internal") ? Effect.UNKNOWN : Effect.REFUSED;
      return List.of("invalid_argument", "permission_denied", "unauthenticated").contains(problem.code) ? Effect.REFUSED : Effect.UNKNOWN;
    }

    // Whether the state of the cluster refused the call, and not a node before it came there.
    boolean decided() {
      return effect == Effect.REFUSED && !problem.reason.isEmpty() && !List.of("resource_exhausted", "permission_denied").contains(problem.code);
    }

    IdnodeException exception(boolean unknown, RequestId id) {
      // It is not a node of idnode's, or a call whose repetition changes nothing that matters.
      var lost = problem.reason.isEmpty() && !problem.code.equals("canceled") && !unknown && effect != Effect.REFUSED;
      var reason = lost ? "NO_ENDPOINT" : problem.reason;
      return IdnodeException.of(new Problem(problem.message, problem.code, reason, problem.field, id), unknown, getCause());
    }
  }

  /** Why a call failed. The subclasses tell the cases apart that a program can act on. */
  public static class IdnodeException extends RuntimeException {
    private final Problem problem;
    private List<String> ids = List.of();

    private IdnodeException(Problem p) {
      super((p.reason.isEmpty() ? p.code : p.reason) + ": " + p.message + (p.field.isEmpty() ? "" : " (field " + p.field + ")"));
      problem = p;
    }

    private static IdnodeException of(Problem p, boolean unknown, Throwable cause) {
      var e = switch (unknown ? "OUTCOME_UNKNOWN" : p.reason) {
        case "OUTCOME_UNKNOWN" -> new OutcomeUnknownException(p);
        case "NO_QUORUM" -> new NoQuorumException(p);
        case "NO_ENDPOINT" -> new NoEndpointException(p);
        case "OTHER_CLUSTER" -> new OtherClusterException(p);
        case "OVERLOADED" -> new OverloadedException(p);
        case "STORAGE_FULL" -> new StorageFullException(p);
        case "QUOTA" -> new QuotaException(p);
        case "RATE_LIMITED" -> new RateLimitedException(p);
        case "COUNTER_EXHAUSTED" -> new ExhaustedException(p);
        case "CONCURRENCY" -> new ConcurrencyException(p);
        case "ID_CLAIMED" -> new IdClaimedException(p);
        case "KEY_CONFLICT" -> new KeyConflictException(p);
        case "SERIES_SUSPENDED" -> new SeriesSuspendedException(p);
        case "RESERVATION_EXPIRED" -> new ReservationExpiredException(p);
        case "REQUEST_ID_REUSED" -> new RequestIdReusedException(p);
        case "REQUEST_ID_EXPIRED" -> new RequestIdExpiredException(p);
        case "PERMISSION_DENIED" -> new PermissionDeniedException(p);
        default -> switch (p.code) {
          case "not_found" -> new NotFoundException(p);
          case "invalid_argument" -> new InvalidException(p);
          default -> new IdnodeException(p);
        };
      };
      e.initCause(cause);
      return e;
    }

    // The same with a stack of the caller's own.
    private IdnodeException again() { return of(problem, this instanceof OutcomeUnknownException, getCause()); }
    /** The gRPC status code in lower case, for example {@code unavailable}. */
    public String code() { return problem.code; }
    /** The API's name of the cause, for example {@code ID_CLAIMED}; may be empty. */
    public String reason() { return problem.reason; }
    /** The field of the request that is at fault; may be empty. */
    public String field() { return problem.field; }
    /** The same call with it counts once; null if the call had none. */
    public RequestId requestId() { return problem.requestId; }
    /** Those that {@link HiLo#nextIds} had taken before it failed. */
    public List<String> ids() { return ids; }
  }

  /** A try of the call may have taken effect. Repeating it with {@link #requestId} counts once. */
  public static final class OutcomeUnknownException extends IdnodeException { OutcomeUnknownException(Problem p) { super(p); } }

  /** The cluster has no leader, or no majority. Nothing happened. */
  public static final class NoQuorumException extends IdnodeException { NoQuorumException(Problem p) { super(p); } }

  /** No node answered. Nothing happened. */
  public static final class NoEndpointException extends IdnodeException { NoEndpointException(Problem p) { super(p); } }

  /** The nodes that answer belong to another cluster than the first that did. Nothing happened in its own. */
  public static final class OtherClusterException extends IdnodeException { OtherClusterException(Problem p) { super(p); } }

  /** There are too many calls. Nothing happened. */
  public static final class OverloadedException extends IdnodeException { OverloadedException(Problem p) { super(p); } }

  /** A disk of the cluster is nearly full. Nothing happened. */
  public static final class StorageFullException extends IdnodeException { StorageFullException(Problem p) { super(p); } }

  /** A limit on names, claims or sizes is reached. Nothing happened. */
  public static final class QuotaException extends IdnodeException { QuotaException(Problem p) { super(p); } }

  /** The caller has reached a limit of its own. Nothing happened. */
  public static final class RateLimitedException extends IdnodeException { RateLimitedException(Problem p) { super(p); } }

  /** The counter has no numbers left. */
  public static final class ExhaustedException extends IdnodeException { ExhaustedException(Problem p) { super(p); } }

  /** An expected value is not the current one. */
  public static final class ConcurrencyException extends IdnodeException { ConcurrencyException(Problem p) { super(p); } }

  /** The id is claimed, or was issued by an identity. */
  public static final class IdClaimedException extends IdnodeException { IdClaimedException(Problem p) { super(p); } }

  /** The document's key has a number of another date or scope. */
  public static final class KeyConflictException extends IdnodeException { KeyConflictException(Problem p) { super(p); } }

  /** The series was restored, and gives no numbers until somebody has looked into the books. */
  public static final class SeriesSuspendedException extends IdnodeException { SeriesSuspendedException(Problem p) { super(p); } }

  /** The number's time ended, and another document has it. */
  public static final class ReservationExpiredException extends IdnodeException { ReservationExpiredException(Problem p) { super(p); } }

  /** The request id was used for another request. */
  public static final class RequestIdReusedException extends IdnodeException { RequestIdReusedException(Problem p) { super(p); } }

  /** The cluster no longer knows whether the first try of the call happened. */
  public static final class RequestIdExpiredException extends IdnodeException { RequestIdExpiredException(Problem p) { super(p); } }

  /** The caller's certificate has no right to it. Nothing happened. */
  public static final class PermissionDeniedException extends IdnodeException { PermissionDeniedException(Problem p) { super(p); } }

  /** There is no such identity, counter or claim. */
  public static final class NotFoundException extends IdnodeException { NotFoundException(Problem p) { super(p); } }

  /** The request is wrong: {@link #field} says where, {@link #reason} why. */
  public static final class InvalidException extends IdnodeException { InvalidException(Problem p) { super(p); } }

  /** The client, or the HiLo handle, was closed. */
  public static final class ClosedException extends IdnodeException {
    private ClosedException() { super(new Problem("the client or the handle is closed", "canceled", "CLIENT_CLOSED")); }
  }

  // An object of JSON. A field that is not there is an IllegalArgumentException.
  private record Answer(Map<?, ?> fields) {
    private <T> T field(String name, Class<T> type) {
      if (type.isInstance(fields.get(name))) return type.cast(fields.get(name));
      throw new IllegalArgumentException("the answer has no " + name);
    }

    String text(String name) { return field(name, String.class); }
    boolean flag(String name) { return field(name, Boolean.class); }
    Answer get(String name) { return new Answer(field(name, Map.class)); }
    List<String> texts(String name) { return Stream.of(field(name, List.class).toArray()).map(String::valueOf).toList(); }
    <T> List<T> list(String name, Function<Answer, T> read) {
      field(name, List.class);
      return objects(name).map(read).toList();
    }

    // The API writes numbers of 64 bits as text.
    long number(String name) { return fields.get(name) instanceof Double small ? small.longValue() : Long.parseLong(text(name)); }

    // What need not be there reads as empty.
    String maybe(String name) { return fields.get(name) instanceof String text ? text : ""; }
    Answer object(String name) { return new Answer(fields.get(name) instanceof Map<?, ?> map ? map : Map.of()); }
    Stream<Answer> objects(String name) {
      var all = fields.get(name) instanceof List<?> list ? list : List.of();
      return all.stream().map(value -> new Answer(value instanceof Map<?, ?> map ? map : Map.of()));
    }

    List<String> ids() {
      var ids = texts("ids");
      return ids.isEmpty() ? list("blocks", Answer::block).stream().flatMap(block -> block).toList() : ids;
    }

    private Stream<String> block() {
      var format = number("width") > 0 ? "%0" + number("width") + "d" : "%d";
      return LongStream.rangeClosed(number("first"), number("last"))
          .mapToObj(n -> text("prefix") + String.format(Locale.ROOT, format, n) + text("suffix"));
    }
  }

  // JSON, of which Java has no reader of its own. An object is a Map, an array a List, a number a Double.
  static final class Json {
    private static final int DEEPEST = 64;
    private static final String ESCAPES = "\"\\/bfnrt", ESCAPED = "\"\\/\b\f\n\r\t";
    private final String text;
    private int at;

    private Json(String text) { this.text = text; }

    // Throws an IllegalArgumentException if the text is no object.
    static Map<?, ?> object(String text) {
      var json = new Json(text);
      if (json.value(0) instanceof Map<?, ?> map && json.peek() == 0) return map;
      throw json.wrong();
    }

    static String text(Object value) {
      if (value instanceof Map<?, ?> map) {
        return map.entrySet().stream().map(e -> text(e.getKey()) + ":" + text(e.getValue())).collect(Collectors.joining(",", "{", "}"));
      }
      if (value instanceof List<?> list) return list.stream().map(Json::text).collect(Collectors.joining(",", "[", "]"));
      if (!(value instanceof String string)) return String.valueOf(value);
      // Half of a pair of characters would be sent as a question mark, so these are escaped too.
      return string.chars().mapToObj(c -> c < ' ' || c == '"' || c == '\\' || c >= Character.MIN_SURROGATE && c <= Character.MAX_SURROGATE
              ? String.format("\\u%04x", c) : String.valueOf((char) c))
          .collect(Collectors.joining("", "\"", "\""));
    }

    private IllegalArgumentException wrong() { return new IllegalArgumentException("not JSON at " + at); }

    // The next character that is no white space; 0 at the end.
    private char peek() {
      while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
      return at < text.length() ? text.charAt(at) : 0;
    }

    private boolean skip(char c) {
      if (peek() != c) return false;
      at++;
      return true;
    }

    private void need(char c) { if (!skip(c)) throw wrong(); }

    private Object value(int depth) {
      if (depth > DEEPEST) throw wrong();
      if (skip('{')) {
        var map = new HashMap<String, Object>();
        for (var more = !skip('}'); more; more = !skip('}')) {
          if (!map.isEmpty()) need(',');
          var name = string();
          need(':');
          map.put(name, value(depth + 1));
        }
        return map;
      }
      if (skip('[')) {
        var list = new ArrayList<Object>();
        for (var more = !skip(']'); more; more = !skip(']')) {
          if (!list.isEmpty()) need(',');
          list.add(value(depth + 1));
        }
        return list;
      }
      return peek() == '"' ? string() : word();
    }

    private Object word() {
      var start = at;
      while (at < text.length() && (Character.isLetterOrDigit(text.charAt(at)) || "+-.".indexOf(text.charAt(at)) >= 0)) at++;
      var word = text.substring(start, at);
      return switch (word) {
        case "null" -> null;
        case "true", "false" -> Boolean.valueOf(word);
        default -> Double.valueOf(word);
      };
    }

    private String string() {
      need('"');
      var string = new StringBuilder();
      for (var c = raw(); c != '"'; c = raw()) string.append(c == '\\' ? escaped(raw()) : c);
      return string.toString();
    }

    private char raw() {
      if (at == text.length()) throw wrong();
      return text.charAt(at++);
    }

    private char escaped(char c) {
      if (c == 'u') return (char) Integer.parseInt("" + raw() + raw() + raw() + raw(), 16);
      if (ESCAPES.indexOf(c) < 0) throw wrong();
      return ESCAPED.charAt(ESCAPES.indexOf(c));
    }
  }

  /** The HiLo tag for documents of a class with this name: Company gives companies, OrderLine gives OrderLines. */
  public static String collectionOf(String name) {
    var collection = plural(name);
    return collection.chars().filter(Character::isUpperCase).count() > 1 ? collection : collection.toLowerCase(Locale.ROOT);
  }

  // The words and rules are those of pluralize (MIT licence), by which the Go client names collections.
  private static final Map<String, String> IRREGULAR = Arrays.stream((
          "i:we me:us he:they she:they them:them myself:ourselves yourself:yourselves itself:themselves herself:themselves " +
          "himself:themselves themself:themselves is:are was:were has:have this:these that:those my:our its:their his:their " +
          "her:their echo:echoes dingo:dingoes volcano:volcanoes tornado:tornadoes torpedo:torpedoes genus:genera " +
          "viscus:viscera stigma:stigmata stoma:stomata dogma:dogmata lemma:lemmata schema:schemata anathema:anathemata " +
          "ox:oxen axe:axes die:dice yes:yeses foot:feet eave:eaves goose:geese tooth:teeth quiz:quizzes human:humans " +
          "proof:proofs carve:carves valve:valves looey:looies thief:thieves groove:grooves pickaxe:pickaxes " +
          "passerby:passersby canvas:canvases sms:sms")
      .split(" ")).collect(Collectors.toMap(pair -> pair.split(":")[0], pair -> pair.split(":")[1]));
  private static final Set<String> UNCOUNTABLE = Set.of((
          "adulthood advice agenda aid aircraft alcohol ammo analytics anime athletics audio bison blood bream buffalo butter " +
          "carp cash chassis chess clothing cod commerce cooperation corps debris diabetes digestion elk energy equipment " +
          "excretion expertise firmware flounder fun gallows garbage graffiti hardware headquarters health herpes highjinks " +
          "homework housework information jeans justice kudos labour literature machinery mackerel mail media mews moose music " +
          "mud manga news only personnel pike plankton pliers police pollution premises rain research rice salmon scissors " +
          "series sewage shambles shrimp software staff swine tennis traffic transportation trout tuna wealth welfare whiting " +
          "wildebeest wildlife you")
      .split(" "));
  // The first that matches decides.
  private static final List<Map.Entry<Pattern, String>> PLURALS = List.of(
      rule("(pok[e\u00e9]mon|[^aeiou]ese|deer|fish|measles|o[iu]s|pox|sheep)$", "$1"), rule("^thou$", "you"), rule("m[ae]n$", "men"),
      rule("(eaux)$", "$1"), rule("(child)(?:ren)?$", "$1ren"), rule("(pe)(?:rson|ople)$", "$1ople"),
      rule("\\b((?:tit)?m|l)(?:ice|ouse)$", "$1ice"), rule("(matr|cod|mur|sil|vert|ind|append)(?:ix|ex)$", "$1ices"),
      rule("(x|ch|ss|sh|zz)$", "$1es"), rule("([^ch][ieo][ln])ey$", "$1ies"), rule("([^aeiouy]|qu)y$", "$1ies"),
      rule("(?:(kni|wi|li)fe|(ar|l|ea|eo|oa|hoo)f)$", "$1$2ves"), rule("sis$", "ses"),
      rule("(apheli|hyperbat|periheli|asyndet|noumen|phenomen|criteri|organ|prolegomen|hedr|automat)(?:a|on)$", "$1a"),
      rule("(agend|addend|millenni|dat|extrem|bacteri|desiderat|strat|candelabr|errat|ov|symposi|curricul|automat|quor)(?:a|um)$", "$1a"),
      rule("(her|at|gr)o$", "$1oes"), rule("(seraph|cherub)(?:im)?$", "$1im"), rule("(alumn|alg|vertebr)(?:a|ae)$", "$1ae"),
      rule("(alumn|syllab|vir|radi|nucle|fung|cact|stimul|termin|bacill|foc|uter|loc|strat)(?:us|i)$", "$1i"),
      rule("([^l]ias|[aeiou]las|[ejzr]as|[iu]am)$", "$1"), rule("(e[mn]u)s?$", "$1s"), rule("(alias|[^aou]us|t[lm]as|gas|ris)$", "$1es"),
      rule("(ax|test)is$", "$1es"), rule("([^\\x00-\\x7f])$", "$1"), rule("s?$", "s"));

  private static Map.Entry<Pattern, String> rule(String pattern, String plural) {
    return Map.entry(Pattern.compile(pattern, Pattern.CASE_INSENSITIVE | Pattern.UNICODE_CASE), plural);
  }

  private static String plural(String word) {
    var token = word.toLowerCase(Locale.ROOT);
    if (IRREGULAR.containsValue(token)) return like(word, token);
    if (UNCOUNTABLE.contains(token)) return word;
    if (IRREGULAR.containsKey(token)) return like(word, IRREGULAR.get(token));
    for (var rule : PLURALS) {
      var match = rule.getKey().matcher(word);
      if (!match.find()) continue;
      var whole = new StringBuilder();
      match.appendReplacement(whole, rule.getValue());
      var like = match.group().isEmpty() ? word.substring(Math.max(word.length() - 1, 0)) : match.group();
      return word.substring(0, match.start()) + like(like, whole.substring(match.start()));
    }
    return word;
  }

  // The token in the case of word.
  private static String like(String word, String token) {
    String lower = token.toLowerCase(Locale.ROOT), upper = token.toUpperCase(Locale.ROOT);
    if (word.equals(token)) return token;
    if (word.equals(word.toLowerCase(Locale.ROOT))) return lower;
    if (word.equals(word.toUpperCase(Locale.ROOT))) return upper;
    return Character.isUpperCase(word.charAt(0)) ? upper.charAt(0) + lower.substring(1) : lower;
  }
}
