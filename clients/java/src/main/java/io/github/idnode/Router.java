package io.github.idnode;

import static io.github.idnode.Background.MS;
import static io.github.idnode.Background.await;
import static io.github.idnode.Background.locked;

import java.lang.System.Logger.Level;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.net.ssl.SSLContext;

// Knows the nodes, which of them leads, and how far the cluster's log is.
final class Router {
  static final System.Logger LOG = System.getLogger("io.github.idnode");
  static final long LOOK_AGAIN = 200 * MS; // The least time between two looks, however much fails.
  private static final long LOOK_AFTER = 5000 * MS; // How old what is known of the leader may get.
  private static final long LOOK_SOON = 1000 * MS; // The same while no leader is known.
  private static final long LOOK_TIMEOUT = 1000 * MS;
  private static final long SILENT = 200 * MS; // How long a node has to say that it is not.
  private static final long GREET_TIMEOUT = 2000 * MS; // Connect, TLS and an answer over a long way.
  private static final long GREETED = 30_000 * MS; // Unused for longer, an address may have become another's.
  private static final long DISTRUST = 2000 * MS; // How long a node that failed is asked only if no other is left.

  final List<Node> nodes;
  volatile boolean closed;
  volatile long newest; // The newest log index of any answer.
  private volatile long newestAt = System.nanoTime() - LOOK_AFTER;
  private final Lock lock = new ReentrantLock(); // Guards what follows, and writes of the two above.
  private Node leader;
  private int home; // The endpoint for calls that need no leader.
  private String cluster; // That of the first node that answered.
  private Look newestLook; // Null before the first.

  Router(List<String> addresses, SSLContext tls) {
    nodes = addresses.stream().map(address -> new Node(address, tls)).toList();
    LOG.isLoggable(Level.DEBUG); // The first use takes a while, which is no call's.
  }

  void close() {
    closed = true;
    nodes.forEach(Node::close);
  }

  // Notes a log index. What a node has applied is as new as the answer.
  void saw(long index, boolean applied) {
    locked(lock, () -> {
      if (index < newest || !applied && index == newest) return null;
      newest = index;
      newestAt = System.nanoTime();
      return null;
    });
  }

  // Notes that a node has answered a call.
  void answered(Node node, long index) {
    node.suspectUntil = System.nanoTime();
    node.greetedUntil = System.nanoTime() + GREETED;
    if (index > newest) saw(index, false);
  }

  // The newest log index before a call. It is looked for if none, or only an old one, is known.
  long index(long deadline, boolean toLeader, boolean counted) {
    if (toLeader && newest == 0) return latest(deadline, LOOK_AGAIN, look -> look.done);
    return counted && System.nanoTime() - newestAt > LOOK_AFTER ? latest(deadline, LOOK_AGAIN, look -> look.heard) : newest;
  }

  // The same after a look, unless one is younger than age.
  long latest(long deadline, long age, Function<Look, CountDownLatch> until) {
    await(until.apply(look(age)), Math.min(System.nanoTime() + LOOK_TIMEOUT, deadline));
    return newest;
  }

  // Whether a node says nothing at all while another one does. A call that waits for it goes elsewhere then.
  //
  // To send the call elsewhere unasked, as a hedge ("The Tail at Scale", Dean and Barroso 2013), would double the load of a
  // cluster that is only slow. The question writes nothing, and all calls share it. A node that writes slowly answers it, so
  // a call is sent again for a node that stands still, and for no other reason.
  boolean silent(Node node) {
    var look = look(LOOK_AGAIN);
    if (await(look.answered.get(node), look.began + SILENT)) return false;
    return nodes.stream().anyMatch(other -> other != node && look.answered.get(other).getCount() == 0);
  }

  // The node for the next try: not that of the try before if there is another.
  Node route(boolean toLeader, Node last) {
    return locked(lock, () -> {
      if (toLeader) {
        look(leader != null ? LOOK_AFTER : LOOK_SOON);
        if (leader != null && leader != last && !leader.suspected()) return leader;
      }
      var start = last == null ? home : nodes.indexOf(last) + 1;
      var order = IntStream.range(0, nodes.size()).mapToObj(i -> nodes.get((start + i) % nodes.size())).toList();
      return order.stream().filter(node -> node != last && !node.suspected()).findFirst().orElse(order.get(0));
    });
  }

  void failed(Node node) {
    locked(lock, () -> {
      node.suspectUntil = System.nanoTime() + DISTRUST;
      if (leader == node) leader = null;
      if (nodes.get(home) == node) home = (home + 1) % nodes.size();
      return look(LOOK_AGAIN);
    });
  }

  private record Status(String cluster, long index, boolean leads) {
    static Status of(Answer s) {
      var tag = s.text("leaderTag");
      var leads = s.flag("hasQuorum") && !tag.isEmpty() && tag.equals(s.get("self").text("tag"));
      return new Status(s.text("clusterId"), s.number("appliedIndex"), leads);
    }
  }

  // Asks a node whether it leads, and is of the client's cluster. The Failure did nothing.
  boolean greet(Node node, long timeout, BooleanSupplier silent) throws Failure {
    Status status;
    try {
      status = node.call(new Query("ClusterService/GetStatus", Map.of(), null), Math.min(timeout, GREET_TIMEOUT), Status::of, silent);
    } catch (Failure e) {
      var p = e.problem;
      if (!p.reason().isEmpty() && !e.foreign && e.effect != Effect.UNKNOWN) throw e;
      var what = e.foreign ? node.address + " does not speak idnode's HTTP API: is it the address of --http (7402)? " : "";
      throw new Failure(new Problem(what + p.message(), "unavailable", "NO_ENDPOINT"), e.foreign, e.getCause());
    }
    var id = status.cluster;
    if (id.isEmpty()) throw node.failure("there is no cluster yet", "failed_precondition", "NOT_FORMED", false, null); // It may get any.
    var own = locked(lock, () -> cluster = cluster == null ? id : cluster);
    node.greetedUntil = System.nanoTime() + (id.equals(own) ? GREETED : 0);
    if (!id.equals(own)) {
      var message = "this is a node of cluster " + id + ", and a client of cluster " + own;
      throw node.failure(message, "failed_precondition", "OTHER_CLUSTER", true, null);
    }
    saw(status.index, true);
    return status.leads;
  }

  // Looks for the leader, unless a look is in progress or younger than age. Returns the newest.
  private Look look(long age) {
    return locked(lock, () -> {
      var last = newestLook;
      if (last != null && (closed || last.done.getCount() > 0 || System.nanoTime() - last.began < age)) return last;
      var look = new Look(nodes);
      LOG.log(Level.DEBUG, () -> "looks for the leader among " + nodes.stream().map(node -> node.address).toList());
      try {
        for (var node : nodes) Background.thread(() -> ask(look, node), "idnode-look").start();
      } catch (OutOfMemoryError e) { // No thread can be started: the leader stays, and no node counts as silent.
        Stream.concat(Stream.of(look.heard, look.done), look.answered.values().stream()).forEach(CountDownLatch::countDown);
      }
      return newestLook = look; // The threads need the lock to end the look.
    });
  }

  // Asks one endpoint. The first that says of itself that it leads does; nodes hand calls on to one that is no endpoint.
  private void ask(Look look, Node node) {
    var leads = false;
    try {
      leads = greet(node, LOOK_TIMEOUT, null);
      look.heard.countDown();
      look.answered.get(node).countDown();
    } catch (Failure e) {
      LOG.log(Level.DEBUG, () -> "does not hear of " + node.address, e);
      // A node that gives a reason, as one that is overloaded, is not silent.
      if (!e.foreign && !List.of("", "NO_ENDPOINT").contains(e.problem.reason())) look.answered.get(node).countDown();
    } finally {
      ended(look, leads ? node : null);
    }
  }

  // Ends a look's question to one node, which leads or is null.
  private void ended(Look look, Node leads) {
    locked(lock, () -> {
      if (--look.left > 0 && leads == null || look.done.getCount() == 0) return null;
      if (leads != null && leads != leader) LOG.log(Level.DEBUG, () -> leads.address + " leads");
      leader = leads;
      if (leads != null) leads.suspectUntil = System.nanoTime();
      look.heard.countDown();
      look.done.countDown();
      return null;
    });
  }
}
