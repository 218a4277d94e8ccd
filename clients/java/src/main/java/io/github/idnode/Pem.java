package io.github.idnode;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.InvalidKeyException;
import java.security.KeyFactory;
import java.security.KeyManagementException;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.SecureRandom;
import java.security.Signature;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLContextSpi;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLServerSocketFactory;
import javax.net.ssl.SSLSessionContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;

// TLS by certificates and keys in files, which Java has no reader of its own for. They are read again when they have changed.
final class Pem extends SSLContextSpi {
  private static final Pattern KEY = Pattern.compile("-----BEGIN PRIVATE KEY-----(.*?)-----END", Pattern.DOTALL);
  private static final Map<String, String> SIGNATURES = Map.of("RSA", "SHA256withRSA", "EC", "SHA256withECDSA");
  private static final long LOOK_AGAIN = 1000 * Background.MS;
  private final Path ca, certificate, key; // Null for none.
  private final Lock lock = new ReentrantLock(); // Guards what follows.
  private SSLContext context;
  private List<String> read; // What the files were like.
  private long looked;
  private String said = ""; // What is wrong with the files of now, which the log has once.

  Pem(Path ca, Path certificate, Path key) throws IOException, GeneralSecurityException {
    if ((certificate == null) != (key == null)) throw new IllegalArgumentException("a certificate and its key come together");
    this.ca = ca;
    this.certificate = certificate;
    this.key = key;
    read = files(); // First: what changes in between is read again.
    context = context();
    looked = System.nanoTime();
  }

  // As those of Java know it.
  static final class Context extends SSLContext {
    Context(Pem files) { super(files, files.context.getProvider(), "TLS"); }
  }

  private SSLContext current() {
    return Background.locked(lock, () -> {
      if (System.nanoTime() - looked < LOOK_AGAIN) return context;
      looked = System.nanoTime();
      try {
        var now = files();
        if (!now.equals(read)) context = context();
        read = now; // Only now: what went wrong may not be of the files, and is over the next time.
        said = "";
      } catch (IOException | GeneralSecurityException | RuntimeException e) {
        var why = e.toString();
        if (!why.equals(said)) Router.LOG.log(Level.WARNING, "the files of TLS cannot be read again, and those read before stay in use", e);
        said = why;
      }
      return context;
    });
  }

  private List<String> files() throws IOException {
    var all = new ArrayList<String>();
    for (var file : Stream.of(ca, certificate, key).filter(Objects::nonNull).toList()) {
      all.add(file.toRealPath() + " " + Files.getLastModifiedTime(file) + " " + Files.size(file));
    }
    return all;
  }

  private SSLContext context() throws IOException, GeneralSecurityException {
    var made = SSLContext.getInstance("TLS");
    made.init(keys(), trust(), null);
    return made;
  }

  private TrustManager[] trust() throws IOException, GeneralSecurityException {
    var store = ca == null ? null : empty();
    if (ca != null) for (var trusted : certificates(ca)) store.setCertificateEntry("ca" + store.size(), trusted);
    var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(store);
    return trust.getTrustManagers();
  }

  private KeyManager[] keys() throws IOException, GeneralSecurityException {
    if (key == null) return null;
    var found = KEY.matcher(Files.readString(key));
    if (!found.find()) throw new InvalidKeySpecException(key + " holds no PRIVATE KEY; openssl pkcs8 -topk8 -nodes makes one");
    var spec = new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(found.group(1)));
    var chain = certificates(certificate).toArray(new Certificate[0]);
    var own = empty();
    var secret = KeyFactory.getInstance(chain[0].getPublicKey().getAlgorithm()).generatePrivate(spec);
    fit(chain[0].getPublicKey(), secret);
    own.setKeyEntry("client", secret, new char[0], chain);
    var keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
    keys.init(own, new char[0]);
    return keys.getKeyManagers();
  }

  // A renewal may have written one of them, and not yet the other.
  private void fit(PublicKey open, PrivateKey secret) throws GeneralSecurityException {
    var signature = Signature.getInstance(SIGNATURES.getOrDefault(open.getAlgorithm(), open.getAlgorithm()));
    signature.initSign(secret);
    var signed = signature.sign();
    signature.initVerify(open);
    if (!signature.verify(signed)) throw new InvalidKeyException(key + " is not the key of " + certificate);
  }

  private static KeyStore empty() throws IOException, GeneralSecurityException {
    var store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    return store;
  }

  private static List<Certificate> certificates(Path file) throws IOException, GeneralSecurityException {
    var all = CertificateFactory.getInstance("X.509").generateCertificates(new ByteArrayInputStream(Files.readAllBytes(file)));
    if (all.isEmpty()) throw new InvalidKeySpecException(file + " holds no CERTIFICATE");
    return List.copyOf(all);
  }

  @Override
  protected void engineInit(KeyManager[] keys, TrustManager[] trust, SecureRandom random) throws KeyManagementException {
    throw new KeyManagementException("it is made of files");
  }

  @Override
  protected SSLSocketFactory engineGetSocketFactory() { return current().getSocketFactory(); }

  @Override
  protected SSLServerSocketFactory engineGetServerSocketFactory() { return current().getServerSocketFactory(); }

  @Override
  protected SSLEngine engineCreateSSLEngine() { return current().createSSLEngine(); }

  @Override
  protected SSLEngine engineCreateSSLEngine(String host, int port) { return current().createSSLEngine(host, port); }

  @Override
  protected SSLSessionContext engineGetServerSessionContext() { return current().getServerSessionContext(); }

  @Override
  protected SSLSessionContext engineGetClientSessionContext() { return current().getClientSessionContext(); }
}
