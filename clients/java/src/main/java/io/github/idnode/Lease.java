package io.github.idnode;

import java.time.Instant;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

// A worker with its window. Times are in units of the layout. Invariant: its ids rise, and have times before until.
final class Lease {
  static final long PASSED = Long.MIN_VALUE;
  private static final long AHEAD = 100; // How many ms the times of ids may run before the clock.
  private static final long CLOSED = Long.MAX_VALUE - 1; // The last id of a lease that is given back: none follows it.

  final Layout layout;
  final long worker;
  final String token;
  final AtomicLong last; // The newest id, without the worker's bits.
  final AtomicBoolean renewing = new AtomicBoolean();
  volatile long until, renewAt;

  Lease(Answer answer) {
    layout = Layout.of(answer.get("layout"));
    worker = answer.number("worker");
    token = answer.text("token");
    var from = answer.number("from");
    until = answer.number("until");
    var bits = layout.workerBits + layout.sequenceBits;
    if (worker < 0 || worker >> layout.workerBits > 0 || from < 0 || until <= from || until > 1L << 63 - bits) {
      throw new IllegalArgumentException("the answer has a wrong lease");
    }
    last = new AtomicLong((from << layout.sequenceBits) - 1);
    renewAt = from + (until - from) / 2;
  }

  // Makes an id. Else it is PASSED, or how many ms to wait, below 0.
  long take(long now) {
    for (; ; ) {
      var before = last.get();
      var next = Math.max(before + 1, now << layout.sequenceBits);
      var time = next >> layout.sequenceBits;
      if (time >= until) return PASSED;
      var early = (time - now) * layout.unit;
      if (early > AHEAD) return AHEAD - early;
      if (last.compareAndSet(before, next)) {
        return time << layout.workerBits + layout.sequenceBits | worker << layout.sequenceBits | next & (1L << layout.sequenceBits) - 1;
      }
    }
  }

  Map<String, Object> request(String pool, String field, String value) {
    return Map.of("pool", pool, "worker", worker, "token", token, field, value);
  }

  // The time from which on no id is made: none is after this.
  long end() { return (last.getAndSet(CLOSED) >> layout.sequenceBits) + 1; }

  // Divides an id into time, worker and sequence. The epoch and the unit are in milliseconds.
  record Layout(long epoch, long unit, int workerBits, int sequenceBits) {
    static Layout of(Answer answer) {
      var unit = Math.round(Double.parseDouble(answer.text("unit").replace("s", "")) * 1000);
      int worker = (int) answer.number("workerBits"), sequence = (int) answer.number("sequenceBits");
      var valid = unit > 0 && worker > 0 && sequence > 0 && worker + sequence < 63;
      if (!valid) throw new IllegalArgumentException("the answer has a wrong layout");
      return new Layout(Instant.parse(answer.text("epoch")).toEpochMilli(), unit, worker, sequence);
    }

    long at(long millis) { return Math.floorDiv(millis - epoch, unit); }

    Snowflake.Parts parts(long id) {
      var time = Instant.ofEpochMilli(epoch + (id >> workerBits + sequenceBits) * unit);
      return new Snowflake.Parts(time, (int) (id >> sequenceBits & (1L << workerBits) - 1), id & (1L << sequenceBits) - 1);
    }
  }
}
