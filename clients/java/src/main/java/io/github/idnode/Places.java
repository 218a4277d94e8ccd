package io.github.idnode;

import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

// What so many may do at once. Those that the leader decides leave some of the places to others: a node may hold them, and answer
// the others at once. Of those who can have a place, who came first has it.
final class Places {
  private final int most, mostLed;
  private final Lock lock = new ReentrantLock(); // Guards what follows.
  private final Queue<Ticket> waiting = new ArrayDeque<>();
  private int taken, led;

  private static final class Ticket {
    final Thread whose = Thread.currentThread();
    final boolean led;
    volatile boolean given;

    Ticket(boolean led) { this.led = led; }
  }

  Places(int most, int kept) {
    this.most = most;
    mostLed = most - kept;
  }

  // Takes a place. False if the time is over, the thread is interrupted, or the node is silent.
  boolean take(boolean leads, long end, Silence silent) {
    var ticket = new Ticket(leads);
    var used = false;
    Background.locked(lock, () -> waiting.add(ticket) && next());
    if (ticket.given && !Thread.currentThread().isInterrupted()) return true; // If its time is over, that is no other call's doing.
    try {
      while (!ticket.given) {
        if (Background.over(end) || silent.getAsBoolean()) return false;
        var pause = Math.min(end - System.nanoTime(), silent.pause());
        if (!ticket.given) LockSupport.parkNanos(this, pause); // A lock that silent waited for may have taken the wake-up.
      }
      return used = !Background.over(end);
    } finally {
      Background.locked(lock, () -> waiting.remove(ticket));
      if (ticket.given && !used) give(leads);
    }
  }

  void give(boolean leads) {
    Background.locked(lock, () -> {
      taken--;
      if (leads) led--;
      return next();
    });
  }

  // Hands a place over, if there is one and somebody can have it. The caller holds the lock.
  private boolean next() {
    if (taken == most) return false;
    var first = waiting.stream().filter(ticket -> !ticket.led || led < mostLed).findFirst().orElse(null);
    if (first == null) return false;
    waiting.remove(first);
    taken++;
    if (first.led) led++;
    first.given = true;
    LockSupport.unpark(first.whose);
    return true;
  }
}
