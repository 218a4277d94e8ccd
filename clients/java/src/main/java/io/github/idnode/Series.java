package io.github.idnode;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Gives documents numbers without a hole: a number belongs to a document's key, and asking again gives the same one.
 *
 * <p>Store the document without a number, take a number for the document's own id, store the number, and confirm it.
 * Every call may be made again: it has no request id, and one that failed without being refused may have happened.
 * It is safe for concurrent use.
 */
public final class Series {
  private final IdnodeClient client;
  private final String name;

  Series(IdnodeClient client, String name) {
    this.client = client;
    this.name = name;
  }

  /**
   * Gives each of 1 to 1,000 keys, of 40,000 bytes together, a number, or none. A key that has one keeps it, also a voided
   * one: look at its state.
   *
   * @param keys the documents'
   * @return the numbers, in the order of the keys
   */
  public List<DocumentNumber> take(List<String> keys) { return take(keys, new TakeOptions()); }

  /**
   * The same with options.
   *
   * @param keys the documents'
   * @param options what the call is told
   * @return the numbers, in the order of the keys
   */
  public List<DocumentNumber> take(List<String> keys, TakeOptions options) {
    return numbers("TakeNumbers", options.in(Map.of("keys", List.copyOf(keys))), options.call);
  }

  /**
   * Makes the numbers of documents final, or none.
   *
   * @param numbers those of the documents
   * @return the numbers, in their order
   */
  public List<DocumentNumber> confirm(List<NumberOf> numbers) { return confirm(numbers, new CallOptions()); }

  /**
   * The same with options.
   *
   * @param numbers those of the documents
   * @param options what the call is told
   * @return the numbers, in their order
   */
  public List<DocumentNumber> confirm(List<NumberOf> numbers, CallOptions options) { return numbers("ConfirmNumbers", NumberOf.request(numbers), options); }

  /**
   * Says that open numbers belong to no document, and why, in 1 to 128 bytes.
   *
   * @param numbers those of the documents
   * @param reason 1 to 128 bytes
   * @return the numbers, in their order
   */
  public List<DocumentNumber> voidNumbers(List<NumberOf> numbers, String reason) { return voidNumbers(numbers, reason, new CallOptions()); }

  /**
   * The same with options.
   *
   * @param numbers those of the documents
   * @param reason 1 to 128 bytes
   * @param options what the call is told
   * @return the numbers, in their order
   */
  public List<DocumentNumber> voidNumbers(List<NumberOf> numbers, String reason, CallOptions options) {
    var request = new LinkedHashMap<>(NumberOf.request(numbers));
    request.putAll(Map.of("reason", reason));
    return numbers("VoidNumbers", request, options);
  }

  /**
   * Gives open numbers back: another key may get them, or they are voided, as the series' policy says.
   *
   * @param numbers those of the documents
   * @return the numbers, in their order
   */
  public List<DocumentNumber> release(List<NumberOf> numbers) { return release(numbers, new CallOptions()); }

  /**
   * The same with options.
   *
   * @param numbers those of the documents
   * @param options what the call is told
   * @return the numbers, in their order
   */
  public List<DocumentNumber> release(List<NumberOf> numbers, CallOptions options) { return numbers("ReleaseNumbers", NumberOf.request(numbers), options); }

  /**
   * Reads the number of a key. Throws a {@link NotFoundException} if it has none.
   *
   * @param key the document's
   * @return the number
   */
  public DocumentNumber find(String key) { return find(key, new ReadOptions()); }

  /**
   * The same with options.
   *
   * @param key the document's
   * @param options what the call is told
   * @return the number
   */
  public DocumentNumber find(String key, ReadOptions options) {
    return client.call(options.kind(), "SeriesService/WhoHas", options.in(Map.of("series", name, "key", key)), options.call,
        answer -> TakenNumber.of(answer.get("number")));
  }

  private List<DocumentNumber> numbers(String method, Map<String, ?> fields, CallOptions options) {
    var request = new LinkedHashMap<String, Object>(fields);
    request.put("series", name);
    return client.call(Call.Kind.SERIES, "SeriesService/" + method, request, options, answer -> answer.list("numbers", TakenNumber::of));
  }
}
