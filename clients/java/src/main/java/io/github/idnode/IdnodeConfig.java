package io.github.idnode;

import static java.util.Objects.requireNonNull;

import java.time.Duration;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import javax.net.ssl.SSLContext;

/** What a client may be told beside its endpoints. It does not change: each method returns a changed copy. */
public final class IdnodeConfig {
  private static final Duration LONGEST = Duration.ofDays(365); // A longer time is as good as that.
  private String database = "", label = Label.ofProgram(), clusterId = "", tlsServerName = "";
  private SSLContext tls; // Null for none.
  private Duration timeout = Duration.ofSeconds(10), tryTimeout = Duration.ofSeconds(3), failFastAfter = LONGEST;
  private Executor executor; // Null for the client's own.
  private int maxConnections = 128;
  private Consumer<Event> observer = event -> {};

  /** The usual ones. */
  public IdnodeConfig() {}

  private IdnodeConfig(IdnodeConfig of) {
    database = of.database;
    label = of.label;
    clusterId = of.clusterId;
    tlsServerName = of.tlsServerName;
    tls = of.tls;
    timeout = of.timeout;
    tryTimeout = of.tryTimeout;
    failFastAfter = of.failFastAfter;
    executor = of.executor;
    maxConnections = of.maxConnections;
    observer = of.observer;
  }

  static Duration checked(Duration timeout) {
    if (timeout.isZero() || timeout.isNegative()) throw new IllegalArgumentException("a timeout is above zero");
    return timeout.compareTo(LONGEST) > 0 ? LONGEST : timeout;
  }

  private IdnodeConfig with(Consumer<IdnodeConfig> change) {
    var changed = new IdnodeConfig(this);
    change.accept(changed);
    return changed;
  }

  String database() { return database; }
  String label() { return label; }
  String clusterId() { return clusterId; }
  String tlsServerName() { return tlsServerName; }
  SSLContext tls() { return tls; }
  Duration timeout() { return timeout; }
  Duration tryTimeout() { return tryTimeout; }
  Duration failFastAfter() { return failFastAfter; }
  Executor executor() { return executor; }
  int maxConnections() { return maxConnections; }
  Consumer<Event> observer() { return observer; }

  /**
   * These with the database whose ids are given. At first it is {@code default}.
   *
   * @param to its name; empty means {@code default}
   * @return the changed copy
   */
  public IdnodeConfig withDatabase(String to) { return with(c -> c.database = requireNonNull(to, "database")); }

  /**
   * These with TLS.
   *
   * @param to trusts the CA, and holds the certificate; null for none
   * @return the changed copy
   */
  public IdnodeConfig withTls(SSLContext to) { return with(c -> c.tls = to); }

  /**
   * These with TLS by PEM files. A client reads them again when they have changed: it looks once a second at most, when it opens a
   * connection. Files that cannot be read then, or do not fit each other, change nothing, which the log says. Throws an
   * {@link IllegalArgumentException} if a file cannot be read now, or does not hold what it should.
   *
   * @param to names the files
   * @return the changed copy
   */
  public IdnodeConfig withTls(TlsFiles to) { return withTls(to.read()); }

  /**
   * These with the name that the nodes' certificates have. At first it is that of the endpoint.
   *
   * @param to a name of a host; empty for that of the endpoint
   * @return the changed copy
   */
  public IdnodeConfig withTlsServerName(String to) { return with(c -> c.tlsServerName = requireNonNull(to, "tlsServerName")); }

  /**
   * These with the time that bounds every call with all its tries. At first it is 10 s.
   *
   * @param to above zero
   * @return the changed copy
   */
  public IdnodeConfig withTimeout(Duration to) { return with(c -> c.timeout = checked(to)); }

  /**
   * These with the time that bounds one try at one node. At first it is 3 s.
   *
   * @param to above zero
   * @return the changed copy
   */
  public IdnodeConfig withTryTimeout(Duration to) { return with(c -> c.tryTimeout = checked(to)); }

  /**
   * These with a time after which calls give up early. Once no node has answered for so long, each call fails at once with a
   * {@link NoEndpointException}, until a node answers. One call a second is made all the same. At first there is no such time.
   *
   * @param to above zero
   * @return the changed copy
   */
  public IdnodeConfig withFailFastAfter(Duration to) { return with(c -> c.failFastAfter = checked(to)); }

  /**
   * These with the label that is kept with each HiLo range, for people who ask whose a number is. At first it is the names of the
   * host and of the program's main class.
   *
   * @param to at most 64 bytes; empty means the one at first
   * @return the changed copy
   */
  public IdnodeConfig withLabel(String to) { return with(c -> c.label = to.isEmpty() ? Label.ofProgram() : to); }

  /**
   * These with an executor for {@link IdnodeClient#async}, which the client does not shut down. At first there are up to 64 threads of
   * the client's own.
   *
   * @param to runs asynchronous calls; null for threads of the client's own
   * @return the changed copy
   */
  public IdnodeConfig withExecutor(Executor to) { return with(c -> c.executor = to); }

  /**
   * These with the cluster's id: nodes of another one get no call. At first it is the one that the endpoints tell, which must be the
   * same at all that answer before the first call.
   *
   * @param to as {@code idnode cluster status} shows it; empty for the one that the endpoints tell
   * @return the changed copy
   */
  public IdnodeConfig withClusterId(String to) {
    if (!to.matches("[!-~]{0,64}")) throw new IllegalArgumentException("not the id of a cluster: " + to);
    return with(c -> c.clusterId = to);
  }

  /**
   * These with the greatest number of connections to one node. At first it is 128. A quarter, and one of two or three, is kept for
   * calls that need no leader. A call for which none is free in its time is an {@link OverloadedException}.
   *
   * @param to at least 1
   * @return the changed copy
   */
  public IdnodeConfig withMaxConnections(int to) {
    if (to < 1) throw new IllegalArgumentException("maxConnections is at least 1");
    return with(c -> c.maxConnections = to);
  }

  /**
   * These with an observer, as for metrics. It is called in the threads that make the calls, so it must not wait.
   *
   * @param to hears of what a client does for its calls
   * @return the changed copy
   */
  public IdnodeConfig withObserver(Consumer<Event> to) { return with(c -> c.observer = requireNonNull(to, "observer")); }
}
