package io.github.idnode;

import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.LongStream;
import java.util.stream.Stream;

// An object of JSON. A field that is not there is an IllegalArgumentException.
record Answer(Map<?, ?> fields) {
  private <T> T field(String name, Class<T> type) {
    if (type.isInstance(fields.get(name))) return type.cast(fields.get(name));
    throw new IllegalArgumentException("the answer has no " + name);
  }

  String text(String name) { return field(name, String.class); }
  boolean flag(String name) { return field(name, Boolean.class); }
  Answer get(String name) { return new Answer(field(name, Map.class)); }
  List<String> texts(String name) { return Stream.of(field(name, List.class).toArray()).map(String::valueOf).toList(); }
  <T> List<T> list(String name, Function<Answer, T> read) {
    field(name, List.class);
    return objects(name).map(read).toList();
  }

  // The API writes numbers of 64 bits as text.
  long number(String name) { return fields.get(name) instanceof Double small ? small.longValue() : Long.parseLong(text(name)); }

  // What need not be there reads as empty; null for a time.
  Instant time(String name) { return maybe(name).isEmpty() ? null : Instant.parse(maybe(name)); }
  String maybe(String name) { return fields.get(name) instanceof String text ? text : ""; }
  Answer object(String name) { return new Answer(fields.get(name) instanceof Map<?, ?> map ? map : Map.of()); }
  Stream<Answer> objects(String name) {
    var all = fields.get(name) instanceof List<?> list ? list : List.of();
    return all.stream().map(value -> new Answer(value instanceof Map<?, ?> map ? map : Map.of()));
  }

  List<String> ids() {
    var ids = texts("ids");
    return ids.isEmpty() ? list("blocks", Answer::block).stream().flatMap(block -> block).toList() : ids;
  }

  private Stream<String> block() {
    var zeros = "0".repeat((int) number("width"));
    String prefix = text("prefix"), suffix = text("suffix");
    return LongStream.rangeClosed(number("first"), number("last")).mapToObj(n -> {
      var digits = Long.toString(n);
      return prefix + zeros.substring(Math.min(digits.length(), zeros.length())) + digits + suffix;
    });
  }
}
