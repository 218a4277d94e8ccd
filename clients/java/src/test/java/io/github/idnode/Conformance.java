package io.github.idnode;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/** Drives the client for test/e2e/clients: takes a task on each line, and answers with a line. */
public final class Conformance {
  // That of System.out is the machine's.
  private static final PrintStream OUT = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
  private static volatile boolean ended;
  private static IdnodeException failed; // The newest of the task.

  public static void main(String[] args) throws Exception {
    var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (var line = lines.readLine(); line != null; line = lines.readLine()) {
      var task = Json.object(line);
      if (task.get("load") instanceof Map<?, ?> load) {
        load(task, load, lines);
        return;
      }
      if (task.get("url") instanceof String url) {
        say(parsed(url));
        continue;
      }
      var answer = new ArrayList<Object>();
      IdnodeClient opened;
      try {
        opened = connect(task);
      } catch (IllegalArgumentException e) {
        say(List.of(Map.of("error", Map.of("type", "Refused"))));
        continue;
      }
      try (var client = opened) {
        failed = null;
        for (var call : (List<?>) task.get("calls")) answer.add(outcome(client, (Map<?, ?>) call));
      }
      say(answer); // After what closing the client asks of the server.
    }
  }

  private static Map<String, ?> parsed(String url) {
    try {
      var got = Settings.fromUrl(url);
      return Map.of("endpoints", got.endpoints(), "named", got.named());
    } catch (IllegalArgumentException e) {
      return Map.of("error", e.getMessage());
    }
  }

  private static IdnodeClient connect(Map<?, ?> task) throws Exception {
    var config = new IdnodeConfig();
    if (task.get("options") instanceof Map<?, ?> options) {
      if (options.get("clusterId") instanceof String id) config = config.withClusterId(id);
      if (options.get("timeoutMs") instanceof Double ms) config = config.withTimeout(Duration.ofMillis(ms.longValue()));
      if (options.get("tryTimeoutMs") instanceof Double ms) config = config.withTryTimeout(Duration.ofMillis(ms.longValue()));
    }
    if (task.get("tls") instanceof Map<?, ?> tls) {
      var files = new TlsFiles().withCa(Path.of(text(tls, "ca")));
      config = config.withTls(files.withCert(Path.of(text(tls, "cert"))).withKey(Path.of(text(tls, "key"))));
    }
    return new IdnodeClient(strings(task.get("endpoints")), config);
  }

  private static List<String> strings(Object list) {
    return list instanceof List<?> all ? all.stream().map(String::valueOf).toList() : List.of();
  }

  private static Map<String, Object> outcome(IdnodeClient client, Map<?, ?> call) {
    try {
      return Map.of("values", make(client, (String) call.get("call"), (Map<?, ?>) call.get("args")).map(String::valueOf).toList());
    } catch (IdnodeException e) {
      failed = e;
      var type = e.getClass().getSimpleName().replaceFirst("Exception$", "");
      return Map.of("values", e.ids(), "cause", e.getCause() != null, "error", Map.of("type", type, "reason", e.reason(), "field", e.field()));
    }
  }

  private static Stream<?> make(IdnodeClient client, String call, Map<?, ?> args) {
    var n = args.get("n") instanceof Double count ? count.intValue() : 1;
    String name = text(args, "name"), separator = text(args, "separator");
    var identity = client.identity(name, new IdentityOptions().withSeparator(separator));
    var options = options(args);
    switch (call) {
      case "next":
        var told = new NextOptions().withSeparator(separator).withClaim(args.get("claim") != null).withCall(options);
        return client.nextN(text(args, "template"), n, told).stream();
      case "identity.next": return identity.nextN(n, options).stream().flatMap(b -> LongStream.rangeClosed(b.first(), b.last()).boxed());
      case "identity.get": return Stream.of(identity.get());
      case "identity.seed": return Stream.of(identity.seed(Long.parseLong(text(args, "value")), seed(args, options)));
      case "identity.delete": return Stream.of(args.get("forget") != null ? identity.forget(options) : identity.delete(options));
      case "identities": return client.identities(text(args, "prefix")).map(i -> i.name() + "=" + i.value());
      case "claims": return client.claims(text(args, "prefix"));
      case "hilo": return client.hilo(text(args, "tag"), new HiLoOptions().withSeparator(separator)).nextIds(n).stream();
      case "snowflake.next": return LongStream.of(client.snowflake(name).nextIds(n)).boxed();
      case "snowflake.parse":
        var parts = client.snowflake(name).parse(Long.parseLong(text(args, "id")));
        return Stream.of(parts.time().toEpochMilli() + " " + parts.worker() + " " + parts.sequence());
      case "snowflake.close":
        client.snowflake(name).close();
        return Stream.of();
      case "collection": return Stream.of(IdnodeClient.tagOf(name));
      case "claim":
        client.claim(text(args, "id"), new ClaimOptions().withSeparator(separator).withCall(options));
        return Stream.of();
      case "release":
        client.release(text(args, "id"), options);
        return Stream.of();
      default:
        return numbers(client.series(name), call, args);
    }
  }

  private static Stream<String> numbers(Series series, String call, Map<?, ?> args) {
    var keys = strings(args.get("keys"));
    var bound = NumberOf.keys(keys.toArray(new String[0]));
    var got = switch (call) {
      case "series.take" -> series.take(keys, take(args));
      case "series.confirm" -> series.confirm(bound);
      case "series.confirmTaken" -> series.confirm(series.take(keys).stream().map(DocumentNumber::numberOf).toList());
      case "series.void" -> series.voidNumbers(bound, text(args, "reason"));
      case "series.release" -> series.release(bound);
      case "series.find" -> List.of(series.find(keys.get(0)));
      default -> throw new IllegalArgumentException(call);
    };
    return got.stream().map(
        d -> (d.key() + " " + d.text() + " " + d.number() + " " + d.state().name().toLowerCase(Locale.ROOT) + " " + d.note()).stripTrailing());
  }

  private static String text(Map<?, ?> args, String name) {
    return args.get(name) instanceof String text ? text : "";
  }

  private static CallOptions options(Map<?, ?> args) {
    var options = new CallOptions();
    if (args.get("again") != null) return options.withRequestId(failed.requestId());
    if (args.get("requestId") == null) return options;
    return options.withRequestId(new RequestId(text(args, "requestId"), args.get("since") == null ? null : Long.valueOf(text(args, "since"))));
  }

  private static SeedOptions seed(Map<?, ?> args, CallOptions options) {
    var told = new SeedOptions().withForce(args.get("force") != null).withCall(options);
    return args.get("expected") == null ? told : told.withExpected(Long.parseLong(text(args, "expected")));
  }

  private static TakeOptions take(Map<?, ?> args) {
    var options = new TakeOptions().withLabel(text(args, "label"));
    if (args.get("expiresInMs") instanceof Double ms) options = options.withExpiresIn(Duration.ofMillis(ms.longValue()));
    if (args.get("number") != null) options = options.withNumber(Long.parseLong(text(args, "number")), text(args, "because"));
    if (args.get("date") != null) options = options.withDate(LocalDate.parse(text(args, "date")));
    if (!(args.get("values") instanceof Map<?, ?> values)) return options;
    return options.withValues(values.entrySet().stream().collect(Collectors.toMap(e -> (String) e.getKey(), e -> (String) e.getValue())));
  }

  /** Takes values of an identity and HiLo ids in many threads, until the input ends. */
  private static void load(Map<?, ?> task, Map<?, ?> load, BufferedReader lines) throws Exception {
    var callers = new ArrayList<Thread>();
    try (var client = connect(task)) {
      for (long i = 0; i < (Double) load.get("callers"); i++) {
        var number = ((Double) load.get("client")).longValue() + i;
        var pool = text(load, "pool");
        Runnable work = pool.isEmpty()
          ? () -> call(client, text(load, "name"), text(load, "tag"), number)
          : () -> make(client.snowflake(pool), number);
        callers.add(new Thread(work));
      }
      callers.forEach(Thread::start);
      while (lines.readLine() != null) {}
      ended = true;
      for (var caller : callers) caller.join();
    }
  }

  private static void call(IdnodeClient client, String name, String tag, long number) {
    try {
      while (!ended) {
        var begin = System.nanoTime();
        var value = client.identity(name).next();
        var end = System.nanoTime();
        say(Map.of("client", number, "call", begin, "return", end, "value", value, "id", client.hilo(tag).nextId()));
      }
    } catch (RuntimeException e) {
      say(Map.of("error", e.toString()));
    }
  }

  private static void make(Snowflake pool, long number) {
    try {
      while (!ended) {
        say(Map.of("client", number, "ids", LongStream.of(pool.nextIds(10)).mapToObj(Long::toString).toList()));
        LockSupport.parkNanos(10_000_000);
      }
    } catch (RuntimeException e) {
      say(Map.of("error", e.toString()));
    }
  }

  private static synchronized void say(Object answer) {
    OUT.println(Json.text(answer));
  }
}
