package io.github.idnode;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.function.Supplier;

// Threads and waits. Times are in nanoseconds; an end is one of System.nanoTime.
final class Background {
  static final long MS = 1_000_000;

  private Background() {}

  static Thread thread(Runnable work, String name) {
    var thread = new Thread(work, name);
    thread.setDaemon(true);
    return thread;
  }

  static void start(Runnable work, String name) throws IOException {
    try {
      thread(work, name).start();
    } catch (OutOfMemoryError e) { // No thread can be started.
      throw new IOException(e);
    }
  }

  // Connects in another thread: the look-up of a name has no timeout of its own.
  static Connection within(long end, Callable<Connection> work) throws IOException {
    var made = new CompletableFuture<Connection>();
    var over = new CountDownLatch(1); // To wait with get would run other tasks of the program, on a thread of the common pool.
    start(() -> {
      try {
        var connection = work.call();
        if (!made.complete(connection)) connection.close(); // Nobody waits for it.
      } catch (Throwable e) {
        made.completeExceptionally(e);
      }
      over.countDown();
    }, "idnode-io");
    if (!await(over, end) && made.cancel(false)) throw new InterruptedIOException("not in time");
    try {
      return made.join(); // It is there.
    } catch (CompletionException e) {
      throw e.getCause() instanceof IOException known ? known : new IOException(e);
    }
  }

  // Nobody waits for what is done from here on.
  static boolean over(long end) { return System.nanoTime() - end >= 0 || Thread.currentThread().isInterrupted(); }

  // False if the time is over or the thread is interrupted.
  static boolean await(CountDownLatch latch, long end) {
    try {
      return latch.await(end - System.nanoTime(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  // The same, whoever interrupts: the flag is set afterwards.
  static boolean awaitAnyway(CountDownLatch latch, long end) {
    var interrupted = Thread.interrupted();
    var reached = await(latch, end);
    while (Thread.interrupted()) {
      interrupted = true;
      reached = await(latch, end);
    }
    if (interrupted) Thread.currentThread().interrupt();
    return reached;
  }

  // False if the time is over or the thread is interrupted. The caller holds the condition's lock.
  static boolean await(Condition changed, long end) {
    try {
      return changed.awaitNanos(end - System.nanoTime()) > 0;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  // Holds a lock, and not a monitor, which would pin a virtual thread until Java 24.
  static <T> T locked(Lock lock, Supplier<T> work) {
    lock.lock();
    try {
      return work.get();
    } finally {
      lock.unlock();
    }
  }

  // What programs know a time that was over by.
  static TimeoutException timeout(Throwable cause) {
    var e = new TimeoutException("the time was over");
    e.initCause(cause);
    return e;
  }

  static long jitter(long pause) { return ThreadLocalRandom.current().nextLong(pause / 2, pause + 1); }
}
