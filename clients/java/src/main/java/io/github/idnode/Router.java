package io.github.idnode;

import static io.github.idnode.Background.MS;
import static io.github.idnode.Background.await;
import static io.github.idnode.Background.locked;

import java.lang.System.Logger.Level;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
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
  // How long a client that does not know its cluster waits for the other endpoints after the first one's answer.
  private static final long OTHERS = 300 * MS;
  private static final long GREET_TIMEOUT = 2000 * MS; // Connect, TLS and an answer over a long way.
  private static final long GREETED = 30_000 * MS; // Unused for longer, an address may have become another's.
  private static final long DISTRUST = 2000 * MS; // How long a node that failed is asked only if no other is left.

  final List<Node> nodes;
  volatile boolean closed;
  volatile long newest; // The newest log index of any answer.
  private boolean mixed; // The endpoints told two clusters; under the lock.
  private volatile long newestAt = System.nanoTime() - LOOK_AFTER;
  private final Lock lock = new ReentrantLock(); // Guards what follows, and writes of the two above.
  private Node leader;
  private int home; // The endpoint for calls that need no leader.
  private volatile String cluster; // The client's; empty before it is known. Then it stays: ranges are of that cluster.
  private volatile boolean sure; // The program has told it, or two endpoints, or the only one.
  private final Map<String, String> told = new TreeMap<>(); // The cluster that each endpoint told last.
  private final long places;
  private volatile Look newestLook; // Null before the first.

  Router(List<String> addresses, SSLContext tls, String cluster) {
    nodes = addresses.stream().map(address -> new Node(address, tls)).toList();
    places = nodes.stream().map(node -> node.address).distinct().count();
    this.cluster = cluster;
    sure = !cluster.isEmpty();
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

  // Before a call looks for what is not known, or too old: the cluster, the leader, or the newest log index. The first call waits
  // for all endpoints: they may be of two clusters.
  void prepare(long deadline, boolean toLeader, boolean counted) {
    if (cluster.isEmpty()) {
      latest(deadline, LOOK_AGAIN, look -> look.heard);
      var now = System.nanoTime();
      latest(now + Math.min((deadline - now) / 2, OTHERS), Look.TIMEOUT, look -> look.all);
    }
    if (toLeader && newest == 0) latest(deadline, LOOK_AGAIN, look -> look.done);
    else if (counted && System.nanoTime() - newestAt > LOOK_AFTER) latest(deadline, LOOK_AGAIN, look -> look.heard);
  }

  // The client's cluster, which each call names; empty before any endpoint has told one. The Failure says that they tell two.
  String own() throws Failure {
    if (sure) return cluster;
    var several = locked(lock, () -> {
      if (sure || told.isEmpty()) return "";
      var all = new TreeSet<>(told.values());
      if (!cluster.isEmpty()) all.add(cluster);
      if (all.size() == 1) cluster = all.first();
      if (all.size() == 1 && mixed) newest = 0; // It may be another log's.
      mixed = all.size() > 1;
      sure = all.size() == 1 && told.size() >= Math.min(2, places); // Last: whoever reads it has the cluster.
      if (!sure) look(all.size() == 1 ? LOOK_SOON : LOOK_AGAIN);
      return all.size() == 1 ? "" : told.toString();
    });
    if (several.isEmpty()) return cluster;
    var text = "the endpoints are not of one cluster: " + several + "; take the others out of the list, or set clusterId";
    throw new Failure(new Problem(text, "failed_precondition", "OTHER_CLUSTER"), true, null);
  }

  // The newest log index after a look, unless one is younger than age.
  long latest(long deadline, long age, Function<Look, CountDownLatch> until) {
    await(until.apply(look(age)), Math.min(System.nanoTime() + Look.TIMEOUT, deadline));
    return newest;
  }

  // Whether the newest look has found another leader, and did not hear of the node.
  boolean leadsElsewhere(Node node) {
    var look = newestLook;
    return look != null && look.found != null && look.found != node && look.silent(node);
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

  private record Status(String id, String cluster, long index, boolean leads, boolean alone) {
    static Status of(Answer s, String cluster) {
      var tag = s.text("leaderTag");
      var leads = s.flag("hasQuorum") && !tag.isEmpty() && tag.equals(s.get("self").text("tag"));
      return new Status(s.text("clusterId"), cluster, s.number("appliedIndex"), leads, s.objects("members").count() == 1);
    }
  }

  // Asks a node whether it leads, and is of the client's cluster. The Failure did nothing.
  boolean greet(Node node, long timeout, BooleanSupplier silent) throws Failure {
    Status status;
    try {
      status = node.call(new Query("ClusterService/GetStatus", Map.of(), null, ""), Math.min(timeout, GREET_TIMEOUT), Status::of, silent);
    } catch (Failure e) {
      var p = e.problem;
      if (!p.reason().isEmpty() && !e.foreign && e.effect != Effect.UNKNOWN) throw e;
      var what = e.foreign ? node.address + " does not speak idnode's HTTP API: is it the address of --http (7402)? " : "";
      throw new Failure(new Problem(what + p.message(), "unavailable", "NO_ENDPOINT"), e.foreign, e.getCause());
    }
    if (status.id.isEmpty()) throw node.failure("there is no cluster yet", "failed_precondition", "NOT_FORMED", false, null); // It may get any.
    var news = !status.cluster.equals(locked(lock, () -> status.cluster.isEmpty() ? "" : told.put(node.address, status.cluster)));
    if (news && status.alone && places > 1) {
      LOG.log(Level.WARNING, () -> node.address + " is one of several endpoints, and a cluster of one node (" + status.cluster + ")");
    }
    var own = cluster.isEmpty() ? status.id : cluster;
    if (!status.cluster.equals(own)) {
      var stranger = node.other(status.cluster, own);
      if (news) LOG.log(Level.WARNING, stranger.getMessage());
      throw stranger;
    }
    node.greetedUntil = System.nanoTime() + GREETED;
    saw(status.index, true);
    return status.leads;
  }

  // Looks for the leader, unless a look is in progress or younger than age. Returns the newest.
  Look look(long age) {
    return locked(lock, () -> {
      var last = newestLook;
      if (last != null && (closed || last.done.getCount() > 0 || System.nanoTime() - last.began < age)) return last;
      var look = new Look(nodes);
      LOG.log(Level.DEBUG, () -> "looks for the leader among " + nodes.stream().map(node -> node.address).toList());
      try {
        for (var node : nodes) Background.thread(() -> ask(look, node), "idnode-look").start();
      } catch (OutOfMemoryError e) { // No thread can be started: the leader stays, and no node counts as silent.
        nodes.forEach(look::answers);
        Stream.of(look.heard, look.done, look.all).forEach(CountDownLatch::countDown);
      }
      return newestLook = look; // The threads need the lock to end the look.
    });
  }

  // Asks one endpoint. The first that says of itself that it leads does; nodes hand calls on to one that is no endpoint.
  private void ask(Look look, Node node) {
    var leads = false;
    try {
      leads = greet(node, Look.TIMEOUT, null);
      look.answers(node);
      look.heard.countDown();
    } catch (Failure e) {
      LOG.log(Level.DEBUG, () -> "does not hear of " + node.address, e);
      // A node that gives a reason, as one that is overloaded, is not silent.
      if (!e.foreign && !List.of("", "NO_ENDPOINT").contains(e.problem.reason())) look.answers(node);
    } finally {
      ended(look, leads ? node : null);
    }
  }

  // Ends a look's question to one node, which leads or is null.
  private void ended(Look look, Node leads) {
    locked(lock, () -> {
      if (--look.left == 0) look.all.countDown();
      if (look.left > 0 && leads == null || look.done.getCount() == 0) return null;
      if (leads != null && leads != leader) LOG.log(Level.DEBUG, () -> leads.address + " leads");
      leader = look.found = leads;
      if (leads != null) leads.suspectUntil = System.nanoTime();
      look.heard.countDown();
      look.done.countDown();
      return null;
    });
  }
}
