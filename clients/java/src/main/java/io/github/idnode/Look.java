package io.github.idnode;

import static io.github.idnode.Background.MS;

import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;

// One look for the leader, at all nodes side by side.
final class Look {
  static final long TIMEOUT = 1000 * MS;
  private static final long SILENT = 200 * MS, LONGEST = 900 * MS; // How long a node has to say that it is not.
  final long began = System.nanoTime();
  final CountDownLatch heard = new CountDownLatch(1), done = new CountDownLatch(1); // A node has told; the leader, or every node.
  final CountDownLatch all = new CountDownLatch(1); // Every node.
  private final Set<Node> answered = ConcurrentHashMap.newKeySet(); // Some refuse.
  private volatile long patience; // How long it has: half as long again as the first to answer, who may be as far away.
  int left; // How many nodes were not heard of yet. Guarded by the router's lock.

  Look(List<Node> nodes) { left = nodes.size(); }

  void answers(Node node) {
    if (answered.isEmpty()) patience = Math.min(Math.max(SILENT, (System.nanoTime() - began) * 3 / 2), LONGEST);
    answered.add(node);
  }

  boolean over() { return System.nanoTime() - began >= TIMEOUT; }

  boolean heardOf(Node node) { return answered.contains(node); }

  // Whether a node says nothing at all while another one does. Nothing is known as long as no other one answers either.
  boolean silent(Node node) { return !over() && !answered.isEmpty() && System.nanoTime() - began >= patience && !heardOf(node); }
}
