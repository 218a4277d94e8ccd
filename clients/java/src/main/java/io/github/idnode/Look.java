package io.github.idnode;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;

// One look for the leader, at all endpoints side by side.
final class Look {
  final long began = System.nanoTime();
  final CountDownLatch heard = new CountDownLatch(1), done = new CountDownLatch(1); // A node has told; the leader, or every node.
  final CountDownLatch all = new CountDownLatch(1); // Every node.
  final Map<Node, CountDownLatch> answered;
  int left; // How many nodes were not heard of yet. Guarded by the router's lock.

  Look(List<Node> nodes) {
    answered = nodes.stream().collect(Collectors.toMap(node -> node, node -> new CountDownLatch(1)));
    left = nodes.size();
  }
}
