package io.github.idnode;

import static java.util.Objects.requireNonNull;

import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.concurrent.Executor;
import javax.net.ssl.SSLContext;

/**
 * What a client may be told beside its endpoints.
 *
 * @param database whose ids are given; empty means {@code default}
 * @param tls trusts the cluster's CA and holds the client's certificate; null for none
 * @param timeout bounds every call with all its tries: 10 s
 * @param tryTimeout bounds one try at one node: 3 s
 * @param label is kept with each HiLo range, for people who ask whose a number is; at most 64 bytes. At first it is the names of
 *     the host and of the program's main class
 * @param executor runs {@link IdnodeClient#async}; null for up to 64 threads of the client's own, in which calls wait for their turn
 * @param clusterId the cluster's, as {@code idnode cluster status} shows it: nodes of another one get no call. Empty means the one
 *     that the endpoints tell, which must be the same at all that answer before the first call
 */
public record IdnodeConfig(String database, SSLContext tls, Duration timeout, Duration tryTimeout, String label, Executor executor, String clusterId) {
  private static final Duration LONGEST = Duration.ofDays(365); // A longer time is as good as that.

  /**
   * Throws an {@link IllegalArgumentException} if a timeout is not above zero, or the cluster's id cannot be one.
   *
   * @param database whose ids are given
   * @param tls trusts the cluster's CA and holds the client's certificate
   * @param timeout bounds every call with all its tries: 10 s
   * @param tryTimeout bounds one try at one node: 3 s
   * @param label is kept with each HiLo range, for people who ask whose a number is
   * @param executor runs {@link IdnodeClient#async}
   * @param clusterId the cluster's; empty means the one that the endpoints tell
   */
  public IdnodeConfig {
    requireNonNull(database, "database");
    requireNonNull(label, "label");
    if (!clusterId.matches("[!-~]{0,64}")) throw new IllegalArgumentException("not the id of a cluster: " + clusterId);
    timeout = checked(timeout);
    tryTimeout = checked(tryTimeout);
  }

  /** The usual ones. */
  public IdnodeConfig() { this("", null, Duration.ofSeconds(10), Duration.ofSeconds(3), Label.ofProgram(), null, ""); }

  static Duration checked(Duration timeout) {
    if (timeout.isZero() || timeout.isNegative()) throw new IllegalArgumentException("a timeout is above zero");
    return timeout.compareTo(LONGEST) > 0 ? LONGEST : timeout;
  }

  /**
   * These with a database.
   *
   * @param to whose ids are given
   * @return the changed copy
   */
  public IdnodeConfig withDatabase(String to) { return new IdnodeConfig(to, tls, timeout, tryTimeout, label, executor, clusterId); }

  /**
   * These with TLS.
   *
   * @param to trusts the CA, and holds the certificate
   * @return the changed copy
   */
  public IdnodeConfig withTls(SSLContext to) { return new IdnodeConfig(database, to, timeout, tryTimeout, label, executor, clusterId); }

  /**
   * These with TLS by PEM files: the cluster's CA, the client's certificate and its PKCS #8 key.
   *
   * @param ca certificates of the cluster's CA
   * @param certificate the client's, and those between it and the CA
   * @param key its private key, in PKCS #8
   * @return the changed copy
   * @throws IOException if a file cannot be read
   * @throws GeneralSecurityException if a file does not hold what it should
   */
  public IdnodeConfig withTls(Path ca, Path certificate, Path key) throws IOException, GeneralSecurityException {
    return withTls(Pem.context(ca, certificate, key));
  }

  /**
   * These with a timeout.
   *
   * @param to above zero
   * @return the changed copy
   */
  public IdnodeConfig withTimeout(Duration to) { return new IdnodeConfig(database, tls, to, tryTimeout, label, executor, clusterId); }

  /**
   * These with a timeout of one try.
   *
   * @param to above zero
   * @return the changed copy
   */
  public IdnodeConfig withTryTimeout(Duration to) { return new IdnodeConfig(database, tls, timeout, to, label, executor, clusterId); }

  /**
   * These with a label.
   *
   * @param to at most 64 bytes
   * @return the changed copy
   */
  public IdnodeConfig withLabel(String to) { return new IdnodeConfig(database, tls, timeout, tryTimeout, to, executor, clusterId); }

  /**
   * These with an executor, which the client does not shut down.
   *
   * @param to runs asynchronous calls
   * @return the changed copy
   */
  public IdnodeConfig withExecutor(Executor to) { return new IdnodeConfig(database, tls, timeout, tryTimeout, label, to, clusterId); }

  /**
   * These with the cluster's id.
   *
   * @param to as {@code idnode cluster status} shows it
   * @return the changed copy
   */
  public IdnodeConfig withClusterId(String to) { return new IdnodeConfig(database, tls, timeout, tryTimeout, label, executor, to); }
}
