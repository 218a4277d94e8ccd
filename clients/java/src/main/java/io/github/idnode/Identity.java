package io.github.idnode;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** A counter agreed by the cluster, which gives 1, 2, 3 and so on, without holes. It is safe for concurrent use. */
public final class Identity {
  private final IdnodeClient client;
  private final String name;
  private final IdentityOptions its;

  Identity(IdnodeClient client, String name, IdentityOptions its) {
    this.client = client;
    this.name = name;
    this.its = its;
  }

  /**
   * Takes the next value.
   *
   * @return the value
   */
  public long next() { return next(new CallOptions()); }

  /**
   * The same with options.
   *
   * @param options what the call is told
   * @return the value
   */
  public long next(CallOptions options) { return nextN(1, options).get(0).first(); }

  /**
   * Takes the next n values: one block, or several where claimed ids lie between.
   *
   * @param n how many, 1 to 1,000,000
   * @return the blocks, in order
   */
  public List<ValueBlock> nextN(int n) { return nextN(n, new CallOptions()); }

  /**
   * The same with options.
   *
   * @param n how many, 1 to 1,000,000
   * @param options what the call is told
   * @return the blocks, in order
   */
  public List<ValueBlock> nextN(int n, CallOptions options) {
    IdnodeClient.checkCount(n);
    return call(Call.Kind.ONCE, "IdsService/NextIdentity", Map.of("name", name, "count", n, "separator", its.separator), options,
        answer -> answer.list("blocks", b -> new ValueBlock(b.number("first"), b.number("last"))));
  }

  /**
   * Reads the last value taken. Throws a {@link NotFoundException} if none ever was.
   *
   * @return the value
   */
  public long get() { return get(new ReadOptions()); }

  /**
   * The same with options.
   *
   * @param options what the call is told
   * @return the value
   */
  public long get(ReadOptions options) {
    return call(options.kind(), "IdsService/GetIdentity", options.in(Map.of("name", name)), options.call,
        answer -> answer.get("identity").number("value"));
  }

  /**
   * Raises the last value taken to value, and returns what it is now.
   *
   * @param value the last value to be taken
   * @return the last value taken
   */
  public long seed(long value) { return seed(value, new SeedOptions()); }

  /**
   * The same with options.
   *
   * @param value the last value to be taken
   * @param options what the call is told
   * @return the last value taken
   */
  public long seed(long value, SeedOptions options) {
    var request = new LinkedHashMap<String, Object>(Map.of("name", name, "value", String.valueOf(value), "force", options.force));
    if (options.expected != null) request.put("expected", String.valueOf(options.expected));
    return call(Call.Kind.ONCE, "IdsService/SeedIdentity", request, options.call, answer -> answer.number("value"));
  }

  /**
   * Hides the identity and returns its last value, after which a later one goes on.
   *
   * @return the last value
   */
  public long delete() { return delete(new CallOptions()); }

  /**
   * The same with options.
   *
   * @param options what the call is told
   * @return the last value
   */
  public long delete(CallOptions options) { return delete(false, options); }

  /**
   * Deletes the identity and returns its last value. It starts at 1 again: values come twice.
   *
   * @return the last value
   */
  public long forget() { return forget(new CallOptions()); }

  /**
   * The same with options.
   *
   * @param options what the call is told
   * @return the last value
   */
  public long forget(CallOptions options) { return delete(true, options); }

  private long delete(boolean forget, CallOptions options) {
    return call(Call.Kind.ONCE, "IdsService/DeleteIdentity", Map.of("name", name, "forget", forget), options,
        answer -> answer.number("value"));
  }

  private <T> T call(Call.Kind kind, String method, Map<String, ?> request, CallOptions options, Function<Answer, T> read) {
    var other = options.database == null && its.database != null;
    return client.call(kind, method, request, other ? options.withDatabase(its.database) : options, read);
  }
}
