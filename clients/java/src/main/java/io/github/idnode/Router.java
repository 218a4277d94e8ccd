package io.github.idnode;

import static io.github.idnode.Background.MS;
import static io.github.idnode.Background.await;
import static io.github.idnode.Background.locked;

import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.Stream;

// Knows the nodes, which of them leads, and how far the cluster's log is.
final class Router {
  static final System.Logger LOG = System.getLogger("io.github.idnode");
  static final long LOOK_AGAIN = 200 * MS; // The least time between two looks, however much fails.
  private static final long LOOK_AFTER = 5000 * MS; // How old what is known of the log may get.
  private static final long LOOK_SOON = 1000 * MS; // The least time between two looks while no leader is known.
  // How long a client that does not know its cluster waits for the other endpoints after the first one's answer.
  private static final long OTHERS = 300 * MS;
  private static final long GREET_TIMEOUT = 2000 * MS; // Connect, TLS and an answer over a long way.
  private static final long GREETED = 30_000 * MS; // Unused for longer, an address may have become another's.
  private static final long DISTRUST = 2000 * MS; // How long a node that failed is asked only if no other is left.
  private static final long PROBE = 1000 * MS; // How often a call is made although no node has answered for long.
  private static final int MAX_LEARNT = 16;

  private final IdnodeConfig config;
  private volatile List<Node> nodes; // Those given first, then those that the cluster told of.
  volatile boolean closed;
  volatile boolean lent; // A handle got a range or a window.
  volatile long newest; // The newest log index of any answer.
  private boolean mixed; // The endpoints told two clusters; under the lock.
  private volatile long newestAt = System.nanoTime() - LOOK_AFTER;
  private final Lock lock = new ReentrantLock(); // Guards what follows, and writes of the two above.
  private volatile Node leader; // Null before one is known.
  private volatile long term; // Of the answer that named it.
  private long learntAt = -1; // How far the log was in the answer that told of the members.
  private Status unsure; // What told of members before the cluster was known for sure.
  private volatile long unansweredSince, probedAt; // Since when no node answers, 0 if one does.
  private volatile long answeredAt = System.nanoTime() - GREETED, askedAt = answeredAt; // When a node answered, and was asked, last.
  private int home; // The endpoint for calls that need no leader.
  private volatile String cluster; // The client's; empty before it is known. Then it stays: ranges are of that cluster.
  private volatile boolean sure; // The program has told it, or two endpoints, or the only one.
  private final Map<String, String> told = new TreeMap<>(); // The cluster that each endpoint told last.
  private long places; // How many endpoints were given.
  private volatile Look newestLook; // Null before the first.

  Router(List<String> addresses, IdnodeConfig config) {
    this.config = config;
    nodes = List.of();
    give(addresses);
    cluster = config.clusterId();
    sure = !cluster.isEmpty();
    LOG.isLoggable(Level.DEBUG); // The first use takes a while, which is no call's.
  }

  // Replaces the endpoints that were given. Those of the cluster's own that are among them stay as they are.
  void give(List<String> addresses) {
    if (addresses.isEmpty()) throw new IllegalArgumentException("endpoints is a list of at least one address");
    var all = addresses.stream().map(address -> new Node(this, address, config)).toList();
    locked(lock, () -> {
      var kept = new LinkedHashMap<String, Node>();
      for (var one : all) kept.putIfAbsent(one.address, nodes.stream().filter(had -> had.is(one.address)).findFirst().orElse(one));
      kept.values().forEach(node -> node.given = true);
      told.keySet().retainAll(kept.values().stream().map(node -> node.address).toList());
      places = kept.size();
      home = 0;
      replace(Stream.concat(kept.values().stream(), nodes.stream().filter(node -> !node.given)).distinct().toList());
      return null;
    });
  }

  // The caller holds the lock.
  private void replace(List<Node> by) {
    var gone = nodes.stream().filter(node -> !by.contains(node)).toList();
    nodes = by;
    for (var node : gone) {
      node.given = false; // What it still says of its cluster is no endpoint's.
      node.close();
    }
    if (!sure && !gone.isEmpty()) forgetLeader(); // It may be of their cluster.
    else if (gone.contains(leader)) leader = null;
  }

  // With its term: the next one's may be less, in another cluster. The caller holds the lock.
  private void forgetLeader() {
    term = 0;
    leader = null;
  }

  // Learns where the members are that are no endpoints, and forgets those that are members no longer.
  private void learn(Status status) {
    if (!status.quorum) return;
    locked(lock, () -> {
      if (closed || status.index < learntAt) return null;
      if (!sure) {
        unsure = status;
        return null;
      }
      learntAt = status.index;
      var given = nodes.stream().filter(node -> node.given).toList();
      var learnt = status.members.stream().filter(Node::isAddress).filter(address -> given.stream().noneMatch(node -> node.is(address))).distinct()
          .limit(MAX_LEARNT)
          .map(address -> nodes.stream().filter(node -> node.is(address)).findFirst().orElseGet(() -> new Node(this, address, config))).toList();
      var by = Stream.concat(given.stream(), learnt.stream()).distinct().toList();
      if (!by.equals(nodes)) replace(by);
      return null;
    });
  }

  private List<String> addresses(boolean given) { return nodes.stream().filter(node -> node.given == given).map(node -> node.address).toList(); }

  // Those that get calls: endpoints, and learnt ones that have told the client's own cluster.
  List<Node> reach() { return nodes.stream().filter(node -> node.given || node.greeted()).toList(); }

  // Takes the leader of the greatest term that an answer named, by the address that members know; empty if it named none.
  void leads(long of, String address) {
    var now = leader;
    if (address.isEmpty() || of < term || of == term && now != null && now.is(address)) return;
    nodes.stream().filter(node -> node.is(address)).findFirst().ifPresent(node -> follow(of, node));
  }

  private void follow(long of, Node node) {
    var before = locked(lock, () -> {
      var had = leader;
      if (of < term || !nodes.contains(node)) return node;
      term = of;
      leader = node;
      return had;
    });
    if (before == node) return;
    LOG.log(before == null ? Level.DEBUG : Level.INFO, () -> node.address + " leads" + (before == null ? "" : ", after " + before.address));
    tell(Event.Kind.LEADER, node.address, 0, System.nanoTime(), null);
  }

  void tell(Event.Kind kind, String node, int attempt, long began, IdnodeException error) {
    try {
      var took = attempt > 0 || kind == Event.Kind.LOOK ? System.nanoTime() - began : 0;
      config.observer().accept(new SeenEvent(kind, node, attempt, Duration.ofNanos(took), error));
    } catch (Throwable e) { // Whatever it is, the call has what it has taken.
      LOG.log(Level.WARNING, "the observer failed", e);
    }
  }

  // Why a call gives up early, if no node has answered for as long as the program allows; else null. One call a second goes on.
  // A time in which nobody asked is no outage.
  Problem admit() {
    var since = unansweredSince;
    var now = System.nanoTime();
    if (now - askedAt > 2 * PROBE) unansweredSince = since = 0;
    if (since == 0 || now - since < config.failFastAfter().toNanos()) return null;
    var first = locked(lock, () -> {
      if (probedAt != 0 && now - probedAt < PROBE) return false;
      probedAt = now;
      return true;
    });
    if (first) return null;
    return new Problem("no node has answered for " + (now - since) / (1000 * MS) + " s", "unavailable", "NO_ENDPOINT");
  }

  // Notes that a node is asked. Returns when.
  long asks() { return askedAt = System.nanoTime(); }

  void answered() {
    answeredAt = System.nanoTime();
    if (unansweredSince != 0) unansweredSince = 0;
  }

  // Whether a node has answered since a call began, or not long before.
  boolean heard(long began) { return answeredAt - began + GREETED > 0; }

  // Notes that a question of that time has no answer. It begins an outage unless a node has answered since.
  void unanswered(long asked) {
    if (unansweredSince != 0 || answeredAt - asked >= 0) return;
    unansweredSince = System.nanoTime() | 1;
    if (answeredAt - asked >= 0) unansweredSince = 0; // It has right now.
  }

  // The program has lost the client without closing it.
  void dropped() {
    if (closed) return;
    if (lent) LOG.log(Level.WARNING, () -> "a client was not closed, so what it held of ranges and windows may be lost: " + this);
    close();
  }

  void close() {
    closed = true;
    nodes.forEach(Node::close);
  }

  @Override
  public String toString() {
    var now = leader;
    var learnt = addresses(false);
    return "endpoints=" + addresses(true) + (learnt.isEmpty() ? "" : ", learnt=" + learnt) + ", leader=" + (now == null ? "" : now.address)
        + ", cluster=" + cluster + ", " + (closed ? "closed" : unansweredSince != 0 ? "unanswered" : "open");
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
  void succeeded(Node node, long index) {
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
      if (all.size() == 1 && mixed) { // What is known may be another cluster's.
        newest = 0;
        forgetLeader();
      }
      mixed = all.size() > 1;
      sure = all.size() == 1 && told.size() >= Math.min(2, places); // Last: whoever reads it has the cluster.
      if (sure && unsure != null && unsure.cluster.equals(cluster)) learn(unsure);
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

  // Whether another node leads, and the newest look did not hear of this one.
  boolean leadsElsewhere(Node node) {
    var look = newestLook;
    var now = leader;
    return look != null && now != null && now != node && look.heardOf(now) && look.silent(node);
  }

  // The node for the next try: not that of the try before if there is another.
  Node route(boolean toLeader, Node last) {
    var all = reach();
    return locked(lock, () -> {
      var leads = leader != null && !leader.suspected() && all.contains(leader);
      if (toLeader && !leads) look(LOOK_SOON);
      if (toLeader && leads && leader != last) return leader;
      var start = last == null ? home : all.indexOf(last) + 1;
      var order = IntStream.range(0, all.size()).mapToObj(i -> all.get((start + i) % all.size())).toList();
      return order.stream().filter(node -> node != last && !node.suspected()).findFirst().orElse(order.get(0));
    });
  }

  void failed(Node node) {
    locked(lock, () -> {
      node.suspectUntil = System.nanoTime() + DISTRUST;
      if (nodes.get(home % nodes.size()) == node) home = (home + 1) % nodes.size();
      return look(LOOK_AGAIN);
    });
  }

  private record Status(String id, String cluster, long index, boolean quorum, Connection.Reply reply, String name, List<String> members, boolean alone) {
    static Status of(Answer s, Connection.Reply reply) {
      var members = s.objects("members").filter(member -> !member.maybe("role").equals("ROLE_REMOVED")).map(member -> member.maybe("httpAddress"))
          .filter(address -> !address.isEmpty()).toList();
      return new Status(s.text("clusterId"), reply.cluster(), s.number("appliedIndex"), s.flag("hasQuorum"), reply,
          s.get("self").maybe("httpAddress"), members, s.objects("members").count() == 1);
    }
  }

  // Asks a node whether it leads, and is of the client's cluster. The Failure did nothing.
  boolean greet(Node node, long timeout, long deadline, Silence silent) throws Failure {
    Status status;
    try {
      status = node.call(new Query("ClusterService/GetStatus", "{}", null, "", false), Math.min(timeout, GREET_TIMEOUT), deadline, Status::of, silent);
    } catch (Failure e) {
      var p = e.problem;
      if (!p.reason().isEmpty() && !e.foreign && e.effect != Effect.UNKNOWN) throw e;
      var what = e.foreign ? node.address + " does not speak idnode's HTTP API: is it the address of --http (7402)? " : "";
      throw new Failure(new Problem(what + p.message(), "unavailable", "NO_ENDPOINT"), e.foreign, e.getCause());
    }
    if (status.id.isEmpty()) throw node.failure("there is no cluster yet", "failed_precondition", "NOT_FORMED", false, null); // It may get any.
    var news = !status.cluster.equals(locked(lock, () -> status.cluster.isEmpty() || !node.given ? "" : told.put(node.address, status.cluster)));
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
    node.name = status.name;
    saw(status.index, true);
    learn(status);
    leads(status.reply.term(), status.reply.leader());
    if (!node.is(status.reply.leader())) return false;
    node.suspectUntil = System.nanoTime();
    return true;
  }

  // Looks for the leader, unless a look is in progress or younger than age. Returns the newest.
  Look look(long age) {
    return locked(lock, () -> {
      var last = newestLook;
      if (last != null && (closed || last.done.getCount() > 0 || System.nanoTime() - last.began < age)) return last;
      var all = nodes;
      var look = new Look(all);
      LOG.log(Level.DEBUG, () -> "looks for the leader among " + all.stream().map(node -> node.address).toList());
      try {
        for (var node : all) Background.thread(() -> ask(look, node), "idnode-look").start();
      } catch (OutOfMemoryError e) { // No thread can be started: the leader stays, and no node counts as silent.
        all.forEach(look::answers);
        Stream.of(look.heard, look.done, look.all).forEach(CountDownLatch::countDown);
      }
      return newestLook = look; // The threads need the lock to end the look.
    });
  }

  // Asks one node.
  private void ask(Look look, Node node) {
    var leads = false;
    try {
      leads = greet(node, Look.TIMEOUT, System.nanoTime() + Look.TIMEOUT, null);
      look.answers(node);
      look.heard.countDown();
    } catch (Failure e) {
      LOG.log(Level.DEBUG, () -> "does not hear of " + node.address, e);
      // A node that gives a reason, as one that is overloaded, is not silent.
      if (!e.foreign && !List.of("", "NO_ENDPOINT").contains(e.problem.reason())) look.answers(node);
    } finally {
      ended(look, leads);
    }
  }

  // Ends a look's question to one node.
  private void ended(Look look, boolean leads) {
    var over = locked(lock, () -> {
      if (--look.left == 0) look.all.countDown();
      if (look.left > 0 && !leads || look.done.getCount() == 0) return false;
      look.heard.countDown();
      look.done.countDown();
      return true;
    });
    var now = leader;
    if (over) tell(Event.Kind.LOOK, now == null ? "" : now.address, 0, look.began, null);
  }
}
