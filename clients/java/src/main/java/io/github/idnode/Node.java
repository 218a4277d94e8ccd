package io.github.idnode;

import static io.github.idnode.Background.MS;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.ProtocolException;
import java.security.NoSuchAlgorithmException;
import java.time.DateTimeException;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.function.BiFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLHandshakeException;

// One address, and the connections to it. The JDK's HttpClient is not used: it hands each call to threads of its own, which
// costs more than the call; a caller that waits cannot look around; and until Java 21 it keeps threads and sockets after its use.
final class Node {
  private static final long CONNECT_TIMEOUT = 1500 * MS;
  private static final int MAX_HANDSHAKES = 4;
  private static final long IDLE_TIMEOUT = 60_000 * MS; // Shorter than the two minutes after which a node closes an idle connection.
  private static final Pattern ENDPOINT = Pattern.compile("(?:(https?)://)?(\\[[^]\\[\\s/@]+]|[^]\\[\\s/?#@:]+):([0-9]{1,5})/?");
  final String address;
  private final Router router;
  private final String host, serverName;
  private final int port;
  private final SSLContext tls; // Null without.
  private final Deque<Connection> idle = new ConcurrentLinkedDeque<>(); // The newest first.
  // That of questions, which would seem to have no answer while a handshake on a busy machine takes its time.
  private final Deque<Connection> asking = new ConcurrentLinkedDeque<>();
  private final Places calls;
  // Handshakes of all callers at once would take so long on a busy machine that each is given up, and none ever ends. Without TLS
  // there are none.
  private final Places handshakes = new Places(MAX_HANDSHAKES, 0);
  private volatile boolean closed;
  volatile boolean given; // As an endpoint; else the cluster has told of it.
  volatile String name = ""; // Where the other nodes reach it; empty before it has told, and once it cannot be reached.
  volatile long suspectUntil = System.nanoTime();
  // Until when it counts as a node of the client's cluster: it answered, and no connection broke since.
  volatile long greetedUntil = System.nanoTime();

  Node(Router router, String address, IdnodeConfig config) {
    var found = parsed(address);
    port = Integer.parseInt(found.group(3));
    var secure = config.tls() != null;
    if (secure && "http".equals(found.group(1))) throw new IllegalArgumentException("the endpoint " + address + " has no TLS");
    this.router = router;
    this.address = found.group(2) + ":" + port;
    host = found.group(2).replaceAll("[\\[\\]]", "");
    serverName = config.tlsServerName().isEmpty() ? host : config.tlsServerName();
    tls = secure || !"https".equals(found.group(1)) ? config.tls() : trusted();
    var most = config.maxConnections();
    calls = new Places(most, most == 1 ? 0 : Math.max(most / 4, 1));
  }

  static Matcher parsed(String address) {
    var found = ENDPOINT.matcher(address.strip());
    if (!fits(found)) throw new IllegalArgumentException("an endpoint is host:port, or a URL of that, not " + address);
    return found;
  }

  private static boolean fits(Matcher found) {
    var port = found.matches() ? Integer.parseInt(found.group(3)) : 0;
    return port >= 1 && port <= 65535;
  }

  // Whether it is host:port, as members have it.
  static boolean isAddress(String text) {
    var found = ENDPOINT.matcher(text);
    return fits(found) && found.group(1) == null;
  }

  private static SSLContext trusted() {
    try {
      return SSLContext.getDefault();
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  boolean is(String other) { return !other.isEmpty() && (address.equals(other) || name.equals(other)); }

  boolean suspected() { return System.nanoTime() - suspectUntil < 0; }

  boolean greeted() { return System.nanoTime() - greetedUntil < 0; }

  // Makes one try, whose time begins when it has a connection, and which is over early if the node is silent. What cannot be read
  // is not an answer of a node, nor is one that does not name the query's cluster. With silent null, it is a question whether the
  // node is, which waits for no other call.
  <T> T call(Query query, long timeout, long deadline, BiFunction<Answer, Connection.Reply, T> read, Silence silent) throws Failure {
    var reply = inTurn(calls, query.toLeader(), deadline, silent, () -> ask(query, Math.min(System.nanoTime() + timeout, deadline), silent));
    String own = query.cluster(), named = reply.cluster();
    if (named.equals(own)) router.leads(reply.term(), reply.leader());
    if (reply.status() != 200) {
      var failure = Failure.of(reply.status(), reply.body());
      if (failure.problem.reason().equals("OTHER_CLUSTER")) greetedUntil = System.nanoTime();
      if (failure.problem.reason().equals("CERTIFICATE_ENDED")) drop(); // The other connections show the same certificate.
      throw failure;
    }
    if (!own.isEmpty() && !named.isEmpty() && !named.equals(own)) throw other(named, own);
    try {
      if (named.isEmpty() && !own.isEmpty()) throw new IllegalArgumentException("the answer names no cluster");
      return read.apply(new Answer(Json.object(reply.body())), reply);
    } catch (IllegalArgumentException | DateTimeException e) {
      greetedUntil = System.nanoTime();
      throw failure("this is not an answer of a node", "internal", "", true, e);
    }
  }

  // A node of another cluster than the client's.
  Failure other(String cluster, String own) {
    greetedUntil = System.nanoTime();
    name = "";
    var what = cluster.isEmpty() ? "this node names no cluster" : "this is a node of cluster " + cluster;
    return failure(what + ", and a client of cluster " + own, "failed_precondition", "OTHER_CLUSTER", true, null);
  }

  private interface Work<T> { T done() throws Failure; }

  private <T> T inTurn(Places places, boolean leads, long end, Silence silent, Work<T> work) throws Failure {
    if (silent == null) return work.done();
    if (!places.take(leads, end, silent)) {
      var busy = System.nanoTime() - end >= 0;
      var what = busy ? "no connection to it was free in time" : "it is silent";
      throw failure(what, busy ? "resource_exhausted" : "unavailable", busy ? "OVERLOADED" : "NO_ENDPOINT", false, null);
    }
    try {
      return work.done();
    } finally {
      places.give(leads);
    }
  }

  private Connection.Reply ask(Query query, long end, Silence silent) throws Failure {
    var asked = router.asks();
    checkTime(end);
    try {
      var reply = reply(query, end, silent);
      if (reply.cluster().isEmpty()) router.unanswered(asked); // It is no node.
      else router.answered();
      return reply;
    } catch (Failure e) {
      if (e.getCause() instanceof IOException && !Thread.currentThread().isInterrupted()) router.unanswered(asked);
      throw e;
    }
  }

  // Whatever is sent later may happen, and nobody waits for the answer.
  private void checkTime(long end) throws Failure {
    if (!Background.over(end)) return;
    throw failure("was not asked in time", "unavailable", "NO_ENDPOINT", false, new InterruptedIOException("not in time"));
  }

  private Connection.Reply reply(Query query, long end, Silence silent) throws Failure {
    var pool = silent == null ? asking : idle;
    var kept = kept(pool);
    var connection = kept != null ? kept : tls == null ? connection(pool, end) : inTurn(handshakes, false, end, silent, () -> connection(pool, end));
    Connection.Reply reply;
    try {
      checkTime(end);
      reply = connection.post(address, query, end, silent);
    } catch (Failure e) {
      connection.close();
      throw e;
    } catch (IOException e) {
      connection.close();
      throw broken(e, e instanceof SSLHandshakeException); // With TLS 1.3 a certificate that the node does not trust is refused only now.
    }
    if (connection.kept) keep(pool, connection);
    else connection.close();
    return reply;
  }

  // A connection that no call uses; null if there is none.
  private static Connection kept(Deque<Connection> pool) {
    for (Connection kept; (kept = pool.pollFirst()) != null; kept.close()) {
      if (System.nanoTime() - kept.since < IDLE_TIMEOUT) return kept;
    }
    return null;
  }

  private Connection connection(Deque<Connection> pool, long end) throws Failure {
    var kept = kept(pool); // Another call has ended meanwhile.
    if (kept != null) return kept;
    try {
      var connectBy = Math.min(end, System.nanoTime() + CONNECT_TIMEOUT);
      return Background.within(connectBy, () -> new Connection(host, port, tls == null ? null : tls.getSocketFactory(), serverName, connectBy));
    } catch (IOException e) {
      throw broken(e, true);
    }
  }

  private void keep(Deque<Connection> pool, Connection connection) {
    connection.since = System.nanoTime();
    pool.addFirst(connection);
    for (Connection last; (last = pool.peekLast()) != null && (closed || System.nanoTime() - last.since > IDLE_TIMEOUT); ) {
      if (pool.remove(last)) last.close(); // Else another call took it.
    }
  }

  void close() {
    closed = true;
    drop();
  }

  private void drop() {
    for (var pool : List.of(idle, asking)) {
      for (Connection kept; (kept = pool.pollFirst()) != null; ) kept.close();
    }
  }

  // A failure of a connection; others are likely to be broken too, unless its time was over or the caller has ended it. Early
  // says that nothing was sent, so nothing happened.
  private Failure broken(IOException e, boolean early) {
    if (early && !Thread.currentThread().isInterrupted()) name = ""; // The member may have moved.
    if (!(e instanceof InterruptedIOException) && !Thread.currentThread().isInterrupted()) {
      greetedUntil = System.nanoTime();
      drop();
    }
    var noise = e instanceof ProtocolException || String.valueOf(e.getMessage()).contains("recognized SSL message"); // Neither HTTP nor TLS.
    return failure((early ? "cannot be reached: " : "") + e, "unavailable", early ? "NO_ENDPOINT" : "", noise, e);
  }

  Failure failure(String message, String code, String reason, boolean foreign, Throwable cause) {
    return new Failure(new Problem(address + ": " + message, code, reason), foreign, cause);
  }
}
