package io.github.idnode;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.List;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

// Reads certificates and keys, which Java has no reader of its own for.
final class Pem {
  private static final Pattern KEY = Pattern.compile("-----BEGIN PRIVATE KEY-----(.*?)-----END", Pattern.DOTALL);

  private Pem() {}

  static SSLContext context(Path ca, Path certificate, Path key) throws IOException, GeneralSecurityException {
    var store = empty();
    for (var trusted : certificates(ca)) store.setCertificateEntry("ca" + store.size(), trusted);
    var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(store);
    var found = KEY.matcher(Files.readString(key));
    if (!found.find()) throw new InvalidKeySpecException(key + " holds no PRIVATE KEY; openssl pkcs8 -topk8 -nodes makes one");
    var spec = new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(found.group(1)));
    var chain = certificates(certificate).toArray(new Certificate[0]);
    var own = empty();
    own.setKeyEntry("client", KeyFactory.getInstance(chain[0].getPublicKey().getAlgorithm()).generatePrivate(spec), new char[0], chain);
    var keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
    keys.init(own, new char[0]);
    var context = SSLContext.getInstance("TLS");
    context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
    return context;
  }

  private static KeyStore empty() throws IOException, GeneralSecurityException {
    var store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    return store;
  }

  private static List<Certificate> certificates(Path file) throws IOException, GeneralSecurityException {
    return List.copyOf(CertificateFactory.getInstance("X.509").generateCertificates(new ByteArrayInputStream(Files.readAllBytes(file))));
  }
}
