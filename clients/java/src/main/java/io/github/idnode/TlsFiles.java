package io.github.idnode;

import static java.util.Objects.requireNonNull;

import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import javax.net.ssl.SSLContext;

/** PEM files for TLS. At first there are none: the CAs are those that Java trusts. It does not change: each method returns a changed copy. */
public final class TlsFiles {
  private final Path ca, cert, key; // Null for none.

  /** No files. */
  public TlsFiles() { this(null, null, null); }

  private TlsFiles(Path ca, Path cert, Path key) {
    this.ca = ca;
    this.cert = cert;
    this.key = key;
  }

  /**
   * These with the certificates of the cluster's CA.
   *
   * @param to a PEM file
   * @return the changed copy
   */
  public TlsFiles withCa(Path to) { return new TlsFiles(requireNonNull(to, "ca"), cert, key); }

  /**
   * These with the client's certificate, and those between it and the CA. It comes with its key.
   *
   * @param to a PEM file
   * @return the changed copy
   */
  public TlsFiles withCert(Path to) { return new TlsFiles(ca, requireNonNull(to, "cert"), key); }

  /**
   * These with the private key of the client's certificate.
   *
   * @param to a PEM file of PKCS #8
   * @return the changed copy
   */
  public TlsFiles withKey(Path to) { return new TlsFiles(ca, cert, requireNonNull(to, "key")); }

  SSLContext read() {
    try {
      return new Pem.Context(new Pem(ca, cert, key));
    } catch (IOException | GeneralSecurityException e) {
      throw new IllegalArgumentException("the files of TLS cannot be used: " + e, e);
    }
  }
}
