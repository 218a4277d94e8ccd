package io.github.idnode;

import static io.github.idnode.Background.MS;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ProtocolException;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Locale;
import java.util.function.BooleanSupplier;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;

// One connection, which carries HTTP/1.1, a call at a time. As a stream it is the answer.
final class Connection extends InputStream {
  static final String VERSION = "1.0.0"; // That of pom.xml.
  static final int STEP = 50; // Milliseconds between two looks at what may end a call early.
  private static final int LONGEST = 32 << 20; // Bytes of an answer with its head.
  private static final int LARGE = 8192; // Bytes of a request that is sent beside the reading of its answer.

  // The node's cluster, the leader it knows, and Raft's term there. Each is empty, or 0, if it names none.
  record Reply(int status, String body, String cluster, String leader, long term) {}

  private final Socket plain, socket; // The same without TLS.
  private final InputStream answer = new BufferedInputStream(this);
  private int size; // Of what came of the answer.
  private long end; // When the answer's time is over.
  private BooleanSupplier silent;
  private volatile boolean sent; // The whole request.
  boolean kept; // Another call may follow.
  long since; // When the last one ended.

  Connection(String host, int port, SSLSocketFactory tls, String serverName, long end) throws IOException {
    plain = connect(host, port, end);
    try {
      plain.setTcpNoDelay(true);
      socket = tls == null ? plain : tls.createSocket(plain, serverName, port, true);
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

  private static int millis(long end) { return (int) Math.min(Math.max((end - System.nanoTime()) / MS, 1), Integer.MAX_VALUE); }

  @Override
  public void close() {
    try {
      (kept ? socket : plain).close(); // A write that is blocked holds up the close of TLS, and no other.
    } catch (IOException e) {
      // It is closed all the same.
    }
  }

  Reply post(String host, Query query, long until, BooleanSupplier whetherSilent) throws IOException {
    kept = false;
    size = 0;
    end = until;
    silent = whetherSilent;
    var body = query.body().getBytes(StandardCharsets.UTF_8);
    var named = query.cluster().isEmpty() ? "" : "Idnode-Cluster-Id: " + query.cluster() + "\r\n";
    var trace = query.traceparent() == null ? "" : "traceparent: " + query.traceparent() + "\r\n";
    var text = "POST /idnode.v1." + query.method() + " HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: idnode-java/" + VERSION + "\r\n" + trace + named
        + "Content-Type: application/json\r\nConnect-Timeout-Ms: " + millis(end) + "\r\nContent-Length: " + body.length + "\r\n\r\n";
    // In one piece: a reset in between would hide what a server has said that speaks no HTTP.
    var head = text.getBytes(StandardCharsets.UTF_8);
    var whole = Arrays.copyOf(head, head.length + body.length);
    System.arraycopy(body, 0, whole, head.length, body.length);
    sent = whole.length < LARGE;
    if (sent) socket.getOutputStream().write(whole);
    else Background.start(() -> send(whole), "idnode-io"); // A node that stands still may not take it, and one that refuses it answers before.
    try {
      var reply = reply();
      kept &= sent;
      return reply;
    } catch (RuntimeException e) {
      throw new ProtocolException("this is no HTTP: " + e.getMessage());
    }
  }

  private void send(byte[] whole) {
    try {
      socket.getOutputStream().write(whole);
      sent = true;
    } catch (IOException e) {
      // Whoever reads the answer finds it, or that the connection broke.
    }
  }

  private Reply reply() throws IOException {
    var first = "";
    var status = 0;
    var headers = new HashMap<String, String>();
    for (; status < 200; status = Integer.parseInt(first.split(" ")[1])) { // One below says that another follows.
      first = line();
      headers.clear();
      for (String[] field; !(field = line().split(":", 2))[0].isEmpty(); ) headers.put(field[0].toLowerCase(Locale.ROOT), field[1].strip());
    }
    var length = headers.getOrDefault("content-length", status == 204 ? "0" : "");
    var chunked = headers.containsKey("transfer-encoding");
    var body = new ByteArrayOutputStream();
    if (chunked) {
      for (int size; (size = chunk(line())) > 0; line()) body.write(exactly(size));
      while (!line().isEmpty()) {}
    } else {
      body.write(length.isEmpty() ? answer.readAllBytes() : exactly(Integer.parseInt(length)));
    }
    var ended = (chunked || !length.isEmpty()) && answer.available() == 0; // What follows belongs to no call.
    kept = ended && first.startsWith("HTTP/1.1") && !"close".equalsIgnoreCase(headers.get("connection"));
    return new Reply(status, body.toString(StandardCharsets.UTF_8), headers.getOrDefault("idnode-cluster-id", ""),
        headers.getOrDefault("idnode-leader-address", ""), Long.parseLong(headers.getOrDefault("idnode-term", "0")));
  }

  // A sign, which parseInt takes, would end the answer early.
  private static int chunk(String line) {
    var size = line.split(";")[0].strip();
    if (!size.matches("[0-9a-fA-F]{1,7}")) throw new IllegalArgumentException("a chunk of " + size + " bytes");
    return Integer.parseInt(size, 16);
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
        if (size == 0 && silent != null && silent.getAsBoolean()) throw e;
      }
    }
  }
}
