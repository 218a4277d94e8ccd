package clients

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestJavaFollowsTheLeaderThatAnswersName: the next call goes to the leader of the greatest term that an answer has named.
func TestJavaFollowsTheLeaderThatAnswersName(t *testing.T) {
	followsTheLeader(t, javaProgram, `
try (var client = new IdnodeClient(List.of(args))) {
  for (var i = 0; i < 3; i++) client.identity("invoices").next();
}`)
}

// TestJavaLearnsAddresses: a client goes on with the nodes that its cluster tells of when its endpoint is gone, but not
// with one of another cluster, and forgets what is no member.
func TestJavaLearnsAddresses(t *testing.T) {
	learnsAddresses(t, 1, javaProgram, `
try (var client = new IdnodeClient(List.of(args[0]))) {
  say(client.identity("invoices").next());
  say(client);
  say(client.identity("invoices").next());
  while (client.toString().contains(":1]")) client.nextRange("a"); // Until a look was answered.
  say(client);
}`, `7
IdnodeClient[endpoints=[%[1]s], learnt=[%[2]s, %[3]s, 127.0.0.1:1], leader=, cluster=c, open]
7
IdnodeClient[endpoints=[%[1]s], learnt=[%[2]s, %[3]s], leader=, cluster=c, open]
`)
}

// TestJavaFindsAMemberThatMoved: where the leader's given address is dead, the one that the other members know is used.
func TestJavaFindsAMemberThatMoved(t *testing.T) {
	m := &members{term: 1}
	here := m.serve(t, "c", func() {})
	moved := m.serve(t, "c", func() {})
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = moved
		w.Header().Set("Connection", "close")
		m.answer(w, r, "c", func() {})
	}))
	t.Cleanup(old.Close)
	turn := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { old.Close() }))
	t.Cleanup(turn.Close)
	m.leader, m.told = moved, []string{here, moved}
	got := javaProgram(t, `
try (var client = new IdnodeClient(List.of(args[0], args[1]))) {
  client.identity("invoices").next();
  say(client.toString().contains("leader=" + args[0]));
  new java.net.URL("http://" + args[3]).openStream().close();
  var end = System.nanoTime() + 20_000_000_000L;
  while (System.nanoTime() < end && !client.toString().contains("leader=" + args[2])) client.identity("invoices").next();
  say(client.toString().contains("leader=" + args[2]));
}`, strings.TrimPrefix(old.URL, "http://"), here, moved, strings.TrimPrefix(turn.URL, "http://"))
	if got != "true\ntrue\n" {
		t.Errorf("it follows the leader: %s", got)
	}
}

// TestJavaTakesOtherEndpoints: after a change of the endpoints the calls go to the new ones.
func TestJavaTakesOtherEndpoints(t *testing.T) {
	takesOtherEndpoints(t, javaProgram, `
try (var client = new IdnodeClient(List.of(args[0]))) {
  client.identity("invoices").next();
  client.setEndpoints(List.of(args[1]));
  client.identity("invoices").next();
  for (var wrong : List.of(List.<String>of(), List.of("a"))) {
    try {
      client.setEndpoints(wrong);
    } catch (IllegalArgumentException e) {
      say("refused");
    }
  }
  client.identity("invoices").next();
}`, "refused\nrefused\n", 2)
}

// TestJavaForgetsTheTermOfAStranger: an endpoint of another cluster, whose term is far greater, hides no leader once it is taken out.
func TestJavaForgetsTheTermOfAStranger(t *testing.T) {
	m := &members{term: 2}
	greeted := make(chan struct{})
	var once sync.Once
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.answer(w, r, "c", func() {})
		once.Do(func() { close(greeted) })
	}))
	t.Cleanup(node.Close)
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-greeted // So that the client does not take this cluster for its own.
		w.Header().Set("Idnode-Cluster-Id", "other")
		w.Header().Set("Idnode-Term", "1000")
		w.Header().Set("Idnode-Leader-Address", r.Host)
		_, _ = fmt.Fprintf(w, `{"clusterId":"other","self":{"tag":"A","httpAddress":%q},"hasQuorum":true,"appliedIndex":"1","members":[]}`, r.Host)
	}))
	t.Cleanup(stranger.Close)
	m.leader = m.serve(t, "c", func() {})
	got := javaProgram(t, `
try (var client = new IdnodeClient(List.of(args[0], args[1]))) {
  try {
    client.identity("invoices").next();
  } catch (OtherClusterException e) {
    say("other");
  }
  client.setEndpoints(List.of(args[1], args[2]));
  client.identity("invoices").next();
  say(client.toString().contains("leader=" + args[2]));
}`, strings.TrimPrefix(stranger.URL, "http://"), strings.TrimPrefix(node.URL, "http://"), m.leader)
	if got != "other\ntrue\n" {
		t.Errorf("it follows the leader: %s", got)
	}
}

// TestJavaKeepsPlacesForCallsWithoutALeader: calls that a node holds leave connections for those that it answers.
func TestJavaKeepsPlacesForCallsWithoutALeader(t *testing.T) {
	for most, led := range map[int]int{4: 3, 3: 2, 2: 1} {
		var held sync.WaitGroup
		held.Add(led)
		var node listening
		got := javaProgram(t, `
int most = Integer.parseInt(args[1]), led = Integer.parseInt(args[2]);
var client = new IdnodeClient(List.of(args[0]), new IdnodeConfig().withMaxConnections(most).withTryTimeout(Duration.ofMinutes(2)).withTimeout(Duration.ofMinutes(2)));
for (var i = 0; i < led; i++) client.async(client.identity("held")::next);
new java.net.URL("http://" + args[0] + "/held").openStream().close();
try {
  client.identity("held").next(new CallOptions().withTimeout(Duration.ofMillis(500)));
} catch (OverloadedException e) {
  say(e.outcomeUnknown());
}
say(client.next("users/"));
say(client.identity("held").get(new ReadOptions().withStale(true)));
System.exit(0);
`, node.serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch path.Base(r.URL.Path) {
			case "held":
				held.Wait()
			case "NextIdentity":
				held.Done()
				neverAnswer(w, r)
			case "GetIdentity":
				_, _ = io.WriteString(w, `{"identity":{"name":"held","value":"7"},"logIndex":"101"}`)
			default:
				_, _ = io.WriteString(w, `{"ids":["users/1-A"],"blocks":[],"logIndex":"101"}`)
			}
		}), strconv.Itoa(most), strconv.Itoa(led))
		if want := "false\nusers/1-A\n7\n"; got != want {
			t.Errorf("of %d connections the calls ended with %s, want %s", most, got, want)
		}
	}
}

// TestJavaServesWhoCameFirst: a caller that waits for a connection keeps its place in the queue.
func TestJavaServesWhoCameFirst(t *testing.T) {
	held, going := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var node listening
	javaProgram(t, `
var client = new IdnodeClient(List.of(args[0]), new IdnodeConfig().withMaxConnections(1).withTryTimeout(Duration.ofMinutes(2)).withTimeout(Duration.ofMinutes(2)));
var callers = new ArrayList<Thread>();
for (var i = 0; i < 9; i++) {
  var identity = client.identity("c" + i);
  var caller = new Thread(identity::next);
  callers.add(caller);
  caller.start();
  if (i == 0) new java.net.URL("http://" + args[0] + "/held").openStream().close();
  while (i > 0 && caller.getState() != Thread.State.TIMED_WAITING) Thread.sleep(30);
}
Thread.sleep(500);
new java.net.URL("http://" + args[0] + "/go").openStream().close();
for (var caller : callers) caller.join();
client.close();
`, node.serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch path.Base(r.URL.Path) {
		case "held":
			<-held
		case "go":
			close(going)
		default:
			once.Do(func() { close(held) })
			<-going
			giveSeven(w, r)
		}
	}))
	var order []string
	for _, one := range node.asked {
		if one.method == "NextIdentity" {
			order = append(order, one.fields["name"].(string))
		}
	}
	if !slices.IsSorted(order) || len(order) != 9 {
		t.Errorf("the callers were served as %v", order)
	}
}

// TestJavaWaitsForAConnectionAsLongAsForTheCall: the time of a try begins when it has one. Else it would have what the wait has left of it,
// and go to the end of the queue again.
func TestJavaWaitsForAConnectionAsLongAsForTheCall(t *testing.T) {
	var node listening
	got := javaProgram(t, `
var config = new IdnodeConfig().withMaxConnections(1).withTryTimeout(Duration.ofSeconds(2)).withTimeout(Duration.ofMinutes(1));
try (var client = new IdnodeClient(List.of(args[0]), config)) {
  var calls = new ArrayList<CompletableFuture<Long>>();
  for (var i = 0; i < 10; i++) calls.add(client.async(client.identity("a")::next));
  for (var call : calls) say(call.join());
}`, node.serve(t, func(w http.ResponseWriter, r *http.Request) {
		<-time.After(500 * time.Millisecond)
		giveSeven(w, r)
	}))
	if got != strings.Repeat("7\n", 10) || len(node.asked) != 10 {
		t.Errorf("after %d questions the calls gave %s", len(node.asked), got)
	}
}

// TestJavaGivesPlacesToThoseWhoUseThem: a place is not taken by a caller whose time is over, who is interrupted, or whose look around
// has failed, and a caller that looks around while it comes has it at once.
func TestJavaGivesPlacesToThoseWhoUseThem(t *testing.T) {
	got := javaInside(t, `
var places = new Places(1, 0);
var end = System.nanoTime() + Duration.ofMinutes(5).toNanos();
Thread.currentThread().interrupt();
say(places.take(false, end, null));
Thread.interrupted();
say(places.take(false, System.nanoTime(), null)); // It waited for nobody: that the time is over is for the try to say.
places.give(false);
say(places.take(false, end, null));
var least = Long.MAX_VALUE;
for (var i = 5; i >= 0; i--) {
  var router = new Router(List.of(args[0]), new IdnodeConfig());
  var node = router.reach().get(0);
  var field = Router.class.getDeclaredField("lock");
  field.setAccessible(true);
  var lock = (java.util.concurrent.locks.ReentrantLock) field.get(router);
  var came = new CompletableFuture<Long>();
  var waits = new Thread(() -> {
    try {
      places.take(false, end, new Silence(router, node));
      came.complete(System.nanoTime());
    } catch (NullPointerException e) {
      came.complete(0L);
    }
  });
  lock.lock();
  waits.start();
  while (!lock.hasQueuedThread(waits)) Thread.sleep(10);
  places.give(false);
  Thread.sleep(100);
  if (i == 0) {
    var nodes = Router.class.getDeclaredField("nodes");
    nodes.setAccessible(true);
    nodes.set(router, null); // The look fails.
  }
  var freed = System.nanoTime();
  lock.unlock();
  if (i > 0) least = Math.min(least, came.join() - freed);
  else say(came.join());
}
say(places.take(false, System.nanoTime() + Duration.ofSeconds(20).toNanos(), new Silence(new Router(List.of(args[0]), new IdnodeConfig()), null)));
say(least < Duration.ofMillis(50).toNanos());
`, new(listening).serve(t, giveSeven))
	if want := "false\ntrue\ntrue\n0\ntrue\ntrue\n"; got != want {
		t.Errorf("it says\n%swant\n%s", got, want)
	}
}

// TestJavaSendsNothingThatNobodyWaitsFor on a connection that it has.
func TestJavaSendsNothingThatNobodyWaitsFor(t *testing.T) {
	var node listening
	got := javaInside(t, `
var node = new Router(List.of(args[0]), new IdnodeConfig()).reach().get(0);
var minute = Duration.ofMinutes(1).toNanos();
for (var i = 0; i < 2; i++) {
  try {
    say(node.call(new Query("IdsService/NextIdentity", "{}", null, "", true), minute, System.nanoTime() + minute, (answer, reply) -> 7, null));
  } catch (Failure e) {
    say(e.effect);
  }
  Thread.currentThread().interrupt();
}`, node.serve(t, giveSeven))
	if got != "7\nNOTHING\n" || len(node.asked) != 1 {
		t.Errorf("after %d calls it says %s", len(node.asked), got)
	}
}

// TestJavaRunsNothingElseInACall: while a call waits for its connection on a thread of the common pool, no other task of the
// program runs on that thread.
func TestJavaRunsNothingElseInACall(t *testing.T) {
	got := javaProgram(t, `
System.setProperty("java.util.concurrent.ForkJoinPool.common.parallelism", "2");
var ended = new CountDownLatch(1);
var other = CompletableFuture.runAsync(() -> {
  try {
    ended.await(); // The pool's other thread.
  } catch (InterruptedException e) {
    say(e);
  }
});
var calls = new ConcurrentLinkedQueue<Thread>();
try (var client = new IdnodeClient(List.of(args[0]))) {
  CompletableFuture.supplyAsync(() -> {
    var later = CompletableFuture.runAsync(() -> say("in a call: " + calls.contains(Thread.currentThread())));
    calls.add(Thread.currentThread());
    say(client.identity("invoices").next());
    calls.clear();
    ended.countDown();
    return later;
  }).get().join();
}
`, new(listening).serve(t, giveSeven))
	if want := "7\nin a call: false\n"; got != want {
		t.Errorf("it says\n%swant\n%s", got, want)
	}
}

// TestJavaGivesUpEarly: after a while without any node, calls fail at once, but for one a second, until a node answers.
// What an earlier call with the same request id has done stays unknown.
func TestJavaGivesUpEarly(t *testing.T) {
	var up atomic.Bool
	node := greeting(giveSeven)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case path.Base(r.URL.Path) == "up":
			up.Store(true)
		case up.Load():
			node(w, r)
		default:
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(server.Close)
	got := javaProgram(t, `
var config = new IdnodeConfig().withTimeout(Duration.ofMillis(300)).withFailFastAfter(Duration.ofMillis(500));
try (var client = new IdnodeClient(List.of(args[0]), config)) {
  Supplier<String> call = () -> {
    try {
      return "gave " + client.identity("invoices").next();
    } catch (NoEndpointException | DeadlineException e) {
      return e.outcomeUnknown() ? "unknown" : e.getMessage().contains("no node has answered for ") ? "early" : "late";
    }
  };
  while (!call.get().equals("early")) {}
  var early = 0;
  for (var i = 0; i < 100; i++) if (call.get().equals("early")) early++;
  say(early > 90);
  for (var told = ""; !told.contains("no node has answered for "); ) {
    try {
      client.identity("invoices").next(new CallOptions().withRequestId(new RequestId("again", 5L)));
    } catch (OutcomeUnknownException e) {
      told = e.getMessage();
      if (!e.requestId().id().equals("again")) say(e.requestId());
    }
  }
  new java.net.URL("http://" + args[0] + "/up").openStream().close();
  String last;
  while ((last = call.get()).matches("early|late")) {}
  say(last);
}`, strings.TrimPrefix(server.URL, "http://"))
	if want := "true\ngave 7\n"; got != want {
		t.Errorf("the calls ended with %s, want %s", got, want)
	}
}

// TestJavaTakesOneDeadNodeForNoOutage: a question that was asked before another node answered says nothing of the time after.
func TestJavaTakesOneDeadNodeForNoOutage(t *testing.T) {
	var answered sync.WaitGroup
	answered.Add(1)
	dead := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		answered.Wait()
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(dead.Close)
	node := new(listening).serve(t, func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) == "answered" {
			answered.Done()
			return
		}
		giveSeven(w, r)
	})
	got := javaProgram(t, `
var looked = new CountDownLatch(1);
Consumer<Event> observer = event -> { if (event.kind() == Event.Kind.LOOK) looked.countDown(); };
var config = new IdnodeConfig().withFailFastAfter(Duration.ofNanos(1)).withObserver(observer);
try (var client = new IdnodeClient(List.of(args), config)) {
  say(client.identity("invoices").next());
  new java.net.URL("http://" + args[0] + "/answered").openStream().close();
  looked.await();
  say(client.toString().contains("unanswered"));
}`, node, strings.TrimPrefix(dead.URL, "http://"))
	if want := "7\nfalse\n"; got != want {
		t.Errorf("it says %s, want %s", got, want)
	}
}

// TestJavaObserves: an observer hears of tries, looks, leaders and gaps, and one that fails fails no call.
func TestJavaObserves(t *testing.T) {
	var lost atomic.Bool
	var node listening
	endpoint := node.serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch path.Base(r.URL.Path) {
		case "NextIdentity":
			if !lost.Swap(true) {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Idnode-Leader-Address", r.Host)
			giveSeven(w, r)
		case "ReturnRange":
			_, _ = io.WriteString(w, `{"returned":false,"max":"0","logIndex":"102"}`)
		default:
			oneRange(w, r)
		}
	})
	got := javaProgram(t, `
var heard = new ConcurrentSkipListSet<String>();
Consumer<Event> observer = event -> {
  heard.add(event.kind() + " " + event.attempt() + " " + event.node().equals(args[0]) + " " + (event.error() != null) + " " + !event.duration().isZero());
  if (event.error() != null) heard.add(event.error().getClass().getSimpleName());
  throw new AssertionError();
};
try (var client = new IdnodeClient(List.of(args[0]), new IdnodeConfig().withObserver(observer))) {
  client.identity("invoices").next();
  client.hilo("users").nextId();
}
heard.forEach(Program::say);
`, endpoint)
	if want := `GAP 0 false false false
LEADER 0 true false false
LOOK 0 false false true
OutcomeUnknownException
TRY 1 true false true
TRY 1 true true true
TRY 2 true false true
`; got != want {
		t.Errorf("the observer heard\n%swant\n%s", got, want)
	}
}

// TestJavaObservesWhatACallWouldEndWith: after a try that may have taken effect, a refusal of the next one leaves that unknown.
func TestJavaObservesWhatACallWouldEndWith(t *testing.T) {
	var lost atomic.Bool
	got := javaProgram(t, `
var heard = new ArrayList<IdnodeException>();
Consumer<Event> observer = event -> { if (event.error() != null) heard.add(event.error()); };
try (var client = new IdnodeClient(List.of(args[0]), new IdnodeConfig().withObserver(observer))) {
  client.identity("invoices").next();
} catch (IdnodeException e) {
  say(e.getClass().getSimpleName());
  for (var one : heard) say(one.getClass().getSimpleName() + " " + one.requestId().equals(e.requestId()));
  say(heard.get(1).getMessage().equals(e.getMessage()));
}
`, new(listening).serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if !lost.Swap(true) {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"code":"resource_exhausted","message":"because","details":[{"debug":{"domain":"idnode","reason":"QUOTA"}}]}`)
	}))
	if want := "OutcomeUnknownException\nOutcomeUnknownException true\nOutcomeUnknownException true\ntrue\n"; got != want {
		t.Errorf("it says\n%swant\n%s", got, want)
	}
}

// TestJavaTellsOfAClientThatWasNotClosed: the log has a line if numbers are lost.
func TestJavaTellsOfAClientThatWasNotClosed(t *testing.T) {
	got := javaProgram(t, `
class Loses {
  static void client(boolean takes, String node) {
    var client = new IdnodeClient(List.of(node));
    client.identity("invoices").get();
    if (takes) client.hilo("users").next();
  }
}
var log = java.util.logging.Logger.getLogger("io.github.idnode");
var heard = new LinkedBlockingQueue<String>();
log.addHandler(new java.util.logging.Handler() {
  public void publish(java.util.logging.LogRecord line) { heard.add(line.getLevel() + " " + line.getMessage()); }
  public void flush() {}
  public void close() {}
});
new IdnodeClient(List.of(args[0])).close();
Loses.client(false, args[0].replace("127.0.0.1", "localhost"));
for (var i = 0; i < 5; i++) {
  System.gc();
  Thread.sleep(100);
}
Loses.client(true, args[0]);
String line = null;
for (var i = 0; i < 300 && line == null; i++) {
  System.gc();
  line = heard.poll(100, TimeUnit.MILLISECONDS);
}
say(line);
`, new(listening).serve(t, func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) == "NextRange" {
			oneRange(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"identity":{"name":"invoices","value":"7"},"logIndex":"101"}`)
	}))
	if !strings.HasPrefix(got, "WARNING a client was not closed") || strings.Contains(got, "localhost") {
		t.Errorf("the log has %s", got)
	}
}

// TestJavaReadsCertificatesAgain: files that were replaced are used for new connections, but only once they fit each other,
// also if nothing but what they hold has changed since.
func TestJavaReadsCertificatesAgain(t *testing.T) {
	got := javaProgram(t, `
var into = java.nio.file.Files.createTempDirectory("tls");
BiConsumer<String, String> copy = (from, name) -> {
  try {
    java.nio.file.Files.copy(java.nio.file.Path.of(from, name), into.resolve(name), java.nio.file.StandardCopyOption.REPLACE_EXISTING);
  } catch (java.io.IOException e) {
    throw new java.io.UncheckedIOException(e);
  }
};
var names = List.of("ca.crt", "client.crt", "client.key");
for (var name : names) copy.accept(args[1], name);
var config = new IdnodeConfig().withTls(
    new TlsFiles().withCa(into.resolve("ca.crt")).withCert(into.resolve("client.crt")).withKey(into.resolve("client.key")));
var warned = new CountDownLatch(1);
java.util.logging.Logger.getLogger("io.github.idnode").addHandler(new java.util.logging.Handler() {
  public void publish(java.util.logging.LogRecord line) { if (line.getMessage().contains("cannot be read again")) warned.countDown(); }
  public void flush() {}
  public void close() {}
});
try (var client = new IdnodeClient(List.of(args[0]), config.withTimeout(Duration.ofMinutes(1)))) {
  say(client.identity("invoices").next());
  copy.accept(args[2], "ca.crt");
  copy.accept(args[2], "client.crt"); // The key is that of the old one.
  while (warned.getCount() > 0) client.identity("invoices").next();
  say(client.identity("invoices").next());
  var key = into.resolve("client.key");
  var before = java.nio.file.Files.readAttributes(key, java.nio.file.attribute.BasicFileAttributes.class);
  copy.accept(args[2], "client.key");
  java.nio.file.Files.setLastModifiedTime(key, before.lastModifiedTime());
  if (java.nio.file.Files.size(key) != before.size()) throw new IllegalStateException("the keys differ in size");
  new java.net.URL(args[3]).openStream().close();
  say(client.identity("invoices").next());
}`, renewing(t)...)
	if got != "7\n7\n7\n" {
		t.Errorf("the calls gave %s", got)
	}
}

// TestJavaTakesNoChunkWithASign: a chunk of "-5" bytes does not end an answer.
func TestJavaTakesNoChunkWithASign(t *testing.T) {
	got := javaProgram(t, `
try (var client = new IdnodeClient(List.of(args[0]), new IdnodeConfig().withTimeout(Duration.ofSeconds(2)))) {
  try {
    say(client.identity("invoices").next());
  } catch (OutcomeUnknownException e) {
    say("unknown");
  }
}`, new(listening).serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nIdnode-Cluster-Id: c\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n-5\r\n\r\n", len(seven), seven)
	}))
	if got != "unknown\n" {
		t.Errorf("the call gave %s", got)
	}
}
