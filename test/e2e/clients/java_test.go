package clients

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
)

// javaProgram runs the statements of a main method that has the client, and returns what it wrote.
func javaProgram(t *testing.T, statements string, args ...string) string {
	t.Helper()
	languages[2].need(t)
	if err := compiled(); err != nil {
		t.Fatal(err)
	}
	return runJava(t, append([]string{"-cp", classes, javaSource(t, "", statements)}, args...)...)
}

// javaInside is the same for a program that sees what the package does not export.
func javaInside(t *testing.T, statements string, args ...string) string {
	t.Helper()
	languages[2].need(t)
	if err := compiled(); err != nil {
		t.Fatal(err)
	}
	into := t.TempDir()
	if err := javac(into, []string{javaSource(t, "package io.github.idnode;\n", statements)}, "-cp", classes); err != nil {
		t.Fatal(err)
	}
	return runJava(t, append([]string{"-cp", classes + ":" + into, "io.github.idnode.Program"}, args...)...)
}

func javaSource(t *testing.T, begin, statements string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "Program.java")
	program := begin + `import io.github.idnode.*;
import java.time.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.*;
class Program {
  static void say(Object line) { System.out.println(line); }
  public static void main(String[] args) throws Exception {` + statements + `}
}`
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func runJava(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // It waits for what does not come.
	defer cancel()
	cmd := exec.CommandContext(ctx, "java", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// listening is a node that answers as other does, and notes what it was asked.
type listening struct {
	mu    sync.Mutex
	asked []asked
}

type asked struct {
	method string
	header http.Header
	fields map[string]any
}

func (l *listening) serve(t *testing.T, other http.HandlerFunc) (endpoint string) {
	t.Helper()
	server := httptest.NewServer(greeting(func(w http.ResponseWriter, r *http.Request) {
		one := asked{method: path.Base(r.URL.Path), header: r.Header}
		body, _ := io.ReadAll(r.Body) // A client that leaves in the middle of it gets no answer.
		_ = json.Unmarshal(body, &one.fields)
		r.Body = io.NopCloser(bytes.NewReader(body))
		l.mu.Lock()
		l.asked = append(l.asked, one)
		l.mu.Unlock()
		other(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func (l *listening) last() asked {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked[len(l.asked)-1]
}

// neverAnswer waits until the client leaves.
func neverAnswer(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// silentOnceAsked answers /asked as soon as there was a call of an identity, and nothing else.
func silentOnceAsked() http.HandlerFunc {
	called := make(chan struct{}, 1000)
	return func(w http.ResponseWriter, r *http.Request) {
		switch path.Base(r.URL.Path) {
		case "asked":
			<-called
		case "NextIdentity":
			called <- struct{}{}
			<-r.Context().Done()
		default:
			<-r.Context().Done()
		}
	}
}

// patient begins a Java program whose client would wait for a node for ever.
const patient = `
var patience = Duration.ofDays(100_000);
var client = new IdnodeClient(List.of(args[0]), new IdnodeConfig().withTimeout(patience).withTryTimeout(patience));
`

// TestJavaTellsOfACall: a call says which client, of which version, makes it, and in which trace, and has the
// database and the time that it is given. The version is that of the package.
func TestJavaTellsOfACall(t *testing.T) {
	pom, err := os.ReadFile(filepath.Join(folder, "java", "pom.xml"))
	if err != nil {
		t.Fatal(err)
	}
	var project struct {
		Version string `xml:"version"`
	}
	if err := xml.Unmarshal(pom, &project); err != nil {
		t.Fatal(err)
	}
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var node listening
	got := javaProgram(t, `
try (var client = new IdnodeClient(List.of(args[0]))) {
  say(client.identity("invoices", new IdentityOptions().withDatabase("shop")).next(
      new CallOptions().withTraceparent(args[1]).withTimeout(Duration.ofMinutes(7))));
  try {
    new CallOptions().withTraceparent("a\r\nb: c");
  } catch (IllegalArgumentException e) {
    say("refused");
  }
}`, node.serve(t, giveSeven), trace)
	one := node.last()
	if got != "7\nrefused\n" || one.header.Get("User-Agent") != "idnode-java/"+project.Version || one.header.Get("Traceparent") != trace ||
		one.fields["database"] != "shop" {
		t.Errorf("the calls gave %s, after %v %v", got, one.header, one.fields)
	}
}

// TestJavaBoundsACallByItsOwnTime has a node that does not answer, and a client that would wait for it for ever.
func TestJavaBoundsACallByItsOwnTime(t *testing.T) {
	var node listening
	got := javaProgram(t, patient+`
for (var sent = false; !sent; ) { // A busy machine may take longer to connect.
  try {
    client.identity("a").nextN(1, new CallOptions().withTimeout(Duration.ofSeconds(1)));
  } catch (NoEndpointException | DeadlineException e) {
    continue;
  } catch (OutcomeUnknownException e) {
    say(sent = e.outcomeUnknown());
  }
}
try {
  client.hilo("users").nextIds(3, Duration.ofMillis(100));
} catch (DeadlineException e) {
  say(e.reason() + " " + e.ids());
}
System.exit(0); // Closing would wait for the range.
`, node.serve(t, neverAnswer))
	if got != "true\nDEADLINE_EXCEEDED []\n" {
		t.Errorf("the calls ended with %s", got)
	}
}

// TestJavaSaysThatNoAnswerCameInTime: a read takes nothing, so its outcome matters to nobody.
func TestJavaSaysThatNoAnswerCameInTime(t *testing.T) {
	var node listening
	got := javaProgram(t, patient+`
for (var sent = false; !sent; ) { // A busy machine may take longer to connect.
  try {
    client.identity("a").get(new ReadOptions().withCall(new CallOptions().withTimeout(Duration.ofSeconds(1))));
  } catch (NoEndpointException e) {
    continue;
  } catch (DeadlineException e) {
    sent = true;
    say(e.code() + " " + e.reason() + " " + e.outcomeUnknown() + " " + (e.getCause() instanceof TimeoutException));
  }
}
client.close();
`, node.serve(t, neverAnswer))
	if want := "deadline_exceeded DEADLINE_EXCEEDED false true\n"; got != want {
		t.Errorf("the call ended with %s, want %s", got, want)
	}
}

// TestJavaRefusesARequestIDThatDoesNotCount before anything is sent: the call would take again.
func TestJavaRefusesARequestIDThatDoesNotCount(t *testing.T) {
	var node listening
	got := javaProgram(t, `
var twice = new CallOptions().withRequestId("order-17");
try (var client = new IdnodeClient(List.of(args[0]))) {
  for (var call : List.<Callable<?>>of(
      () -> client.next("users/", new NextOptions().withCall(twice)), () -> client.next("", new NextOptions().withCall(twice)),
      () -> client.next("users/7", new NextOptions().withCall(twice)), () -> client.identity("a").get(new ReadOptions().withCall(twice)),
      () -> client.claims("", new ReadOptions().withCall(twice)), () -> client.series("a").confirm(List.of(), twice),
      () -> client.snowflake("a", twice), () -> client.hilo("a", new HiLoOptions().withCall(twice)))) {
    try {
      say("gave " + call.call());
    } catch (InvalidException e) {
      if (!e.reason().equals("INVALID_OPTION")) say(e);
    }
  }
}`, node.serve(t, giveSeven))
	if got != "" || len(node.asked) > 0 {
		t.Errorf("after %d calls it says %s", len(node.asked), got)
	}
}

// TestJavaEndsACallByAnInterrupt: the flag stays set, and the exception says whether the call may have happened.
func TestJavaEndsACallByAnInterrupt(t *testing.T) {
	var node listening
	got := javaProgram(t, patient+`
Thread.currentThread().interrupt();
for (var call : List.<Callable<?>>of(() -> client.identity("before").next(), () -> client.hilo("users").next())) {
  try {
    call.call();
  } catch (CallInterruptedException e) {
    say(e.outcomeUnknown() + " " + Thread.currentThread().isInterrupted() + " " + e.reason());
  }
}
Thread.interrupted();
var ended = new LinkedBlockingQueue<String>();
var caller = new Thread(() -> {
  try {
    client.identity("during").next(new CallOptions().withRequestId("order-17"));
  } catch (CallInterruptedException e) {
    ended.add(e.outcomeUnknown() + " " + Thread.currentThread().isInterrupted() + " " + e.requestId().id());
  }
});
caller.start();
new java.net.URL("http://" + args[0] + "/asked").openStream().close();
caller.interrupt();
say(ended.take());
System.exit(0);
`, node.serve(t, silentOnceAsked()))
	if want := "false true CANCELED\nfalse true CANCELED\ntrue true order-17\n"; got != want {
		t.Errorf("the calls ended with\n%swant\n%s", got, want)
	}
}

// TestJavaCallsInTheBackground: a future has the outcome of its call, and ends it when it is cancelled.
func TestJavaCallsInTheBackground(t *testing.T) {
	got := javaProgram(t, `
try (var client = new IdnodeClient(List.of(args[0]))) {
  var calls = new ArrayList<CompletableFuture<Long>>();
  for (var i = 0; i < 1000; i++) calls.add(client.async(client.identity("invoices")::next));
  say(calls.stream().mapToLong(CompletableFuture::join).sum());
  try {
    client.async(() -> client.identity("invoices").nextN(0)).join();
  } catch (CompletionException e) {
    say(e.getCause().getClass().getSimpleName());
  }
}
`, new(listening).serve(t, giveSeven))
	if want := "7000\nInvalidException\n"; got != want {
		t.Errorf("the calls gave %s, want %s", got, want)
	}
	got = javaProgram(t, patient+`
var ended = new LinkedBlockingQueue<Object>();
Callable<Long> call = () -> {
  try {
    return client.identity("during").next();
  } catch (CallInterruptedException e) {
    ended.add(e.outcomeUnknown());
    throw e;
  }
};
var calls = List.<Supplier<CompletableFuture<Long>>>of(() -> client.async(call), () -> client.async(call).orTimeout(9, TimeUnit.MINUTES));
for (var begin : calls) {
  var future = begin.get();
  new java.net.URL("http://" + args[0] + "/asked").openStream().close();
  say(future.cancel(false) + " " + ended.take());
}
client.async(call);
client.close();
try {
  client.async(call).join();
} catch (CompletionException e) {
  say(e.getCause().getClass().getSimpleName());
}
var pool = Executors.newSingleThreadExecutor();
pool.shutdown();
var other = new IdnodeClient(List.of(args[0]), new IdnodeConfig().withExecutor(pool));
other.async(call).whenComplete((value, e) -> say(e.getClass().getSimpleName() + " " + e.getCause().getClass().getSimpleName()));
other.close();
`, new(listening).serve(t, silentOnceAsked()))
	if want := "true true\ntrue true\nClosedException\nOverloadedException RejectedExecutionException\n"; got != want {
		t.Errorf("the calls ended with\n%swant\n%s", got, want)
	}
}

// TestJavaBoundsCallsInTheBackground: a call that waits for a thread does so in its own time, and so many may wait.
func TestJavaBoundsCallsInTheBackground(t *testing.T) {
	got := javaProgram(t, `
var client = new IdnodeClient(List.of(args[0]), new IdnodeConfig().withTimeout(Duration.ofSeconds(2)));
var began = System.nanoTime();
var calls = new ArrayList<CompletableFuture<Long>>();
for (var i = 0; i < 1000; i++) calls.add(client.async(client.identity("invoices")::next));
var ends = new TreeSet<String>();
for (var call : calls) {
  try {
    call.get();
  } catch (ExecutionException e) {
    var late = e.getCause().getCause() instanceof TimeoutException;
    ends.add((e.getCause() instanceof OverloadedException ? "waited " : "called ") + late);
  }
}
say(ends + " " + (System.nanoTime() - began < 15_000_000_000L)); // In turns of 64 they would take 30 s.
var other = new IdnodeClient(List.of(args[0]));
var gate = new CountDownLatch(1);
for (var i = 0; i < 10_064; i++) other.async(() -> { gate.await(); return 1; });
other.async(() -> 2).whenComplete((value, e) -> say(e.getClass().getSimpleName()));
gate.countDown();
System.exit(0);
`, new(listening).serve(t, silentOnceAsked()))
	if want := "[called true, waited true] true\nOverloadedException\n"; got != want {
		t.Errorf("the calls ended with\n%swant\n%s", got, want)
	}
}

// TestJavaTellsWhenToComeBack has a node with too many calls.
func TestJavaTellsWhenToComeBack(t *testing.T) {
	c := testCase{Server: []exchange{
		{Method: "NextIdentity", Error: &refusal{Code: "ResourceExhausted", Reason: "RATE_LIMITED", PauseMs: 1500}},
		{Method: "NextIdentity", Forever: true, Error: &refusal{Code: "ResourceExhausted", Reason: "OVERLOADED", PauseMs: 30}},
	}}
	s := newScript(c)
	got := javaProgram(t, `
try (var client = new IdnodeClient(List.of(args[0]))) {
  for (var i = 0; i < 2; i++) {
    try {
      client.identity("invoices").next();
    } catch (IdnodeException e) {
      say(e.reason() + " " + e.retryAfter().get().toMillis() + " " + e.outcomeUnknown());
    }
  }
}`, s.serveHTTP(t, 1)[0])
	s.end(t)
	if want := "RATE_LIMITED 1500 false\nOVERLOADED 30 false\n"; got != want {
		t.Errorf("the calls ended with %s, want %s", got, want)
	}
}

// TestJavaReadsAStateThatItDoesNotKnow: a newer cluster may have more states of numbers, for which an older node has no name. The
// call is made once, and has its numbers.
func TestJavaReadsAStateThatItDoesNotKnow(t *testing.T) {
	var node listening
	got := javaProgram(t, `
try (var client = new IdnodeClient(List.of(args[0]))) {
  for (var number : client.series("bills").take(List.of("a", "b"))) say(number.text() + " " + number.state());
}`, node.serve(t, func(w http.ResponseWriter, _ *http.Request) {
		const number = `{"key":"a","text":"R1","scope":[],"number":"1","state":%s,"overdue":false,"date":"","label":"","reason":"","note":""}`
		_, _ = fmt.Fprintf(w, `{"numbers":[`+number+","+number+`],"logIndex":"101"}`, `"NUMBER_STATE_ARCHIVED"`, "77")
	}))
	if want := "R1 OTHER\nR1 OTHER\n"; got != want || len(node.asked) != 1 {
		t.Errorf("after %d calls there is %s, want %s", len(node.asked), got, want)
	}
}

// oneRange answers NextRange with the range 1 to 9, and gives what is returned back.
func oneRange(w http.ResponseWriter, r *http.Request) {
	if path.Base(r.URL.Path) == "NextRange" {
		_, _ = io.WriteString(w, `{"prefix":"users/","low":"1","high":"9","size":"9","nodeTag":"A","rangeAt":null,"fromReserve":false,"token":"AQ==","logIndex":"101"}`)
		return
	}
	_, _ = io.WriteString(w, `{"returned":true,"max":"0","logIndex":"102"}`)
}

// TestJavaNamesWhoHoldsARange: a client without a label, or with an empty one, has that of its host and program.
func TestJavaNamesWhoHoldsARange(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	var node listening
	javaProgram(t, `
for (var config : List.of(new IdnodeConfig(), new IdnodeConfig().withLabel("other").withLabel(""))) {
  try (var client = new IdnodeClient(List.of(args[0]), config)) {
    client.nextRange("users");
  }
}`, node.serve(t, oneRange))
	// With a file of source, the program is Java's launcher.
	want := host + " com.sun.tools.javac.launcher.Main"
	for _, one := range node.asked {
		if got := one.fields["label"]; one.method == "NextRange" && got != want[:min(len(want), 64)] {
			t.Errorf("the label is %q, want %q", got, want)
		}
	}
}

// TestJavaNamesItsLastRange: the cluster gives the numbers after it, as many as the caller's pace needs.
func TestJavaNamesItsLastRange(t *testing.T) {
	var node listening
	got := javaProgram(t, `
try (var client = new IdnodeClient(List.of(args[0]))) {
  var range = client.nextRange("users");
  say(client.nextRange("users", new RangeOptions().withLast(range)).granted());
}`, node.serve(t, oneRange))
	if fields := node.last().fields; got != "9\n" || fields["lastMax"] != "9" || fields["lastSize"] != 9.0 {
		t.Errorf("it asked for %v, and got %s", fields, got)
	}
}

// TestJavaOpensAHandleThatWasClosed: closing a handle ends it for all who share it, and not the collection.
func TestJavaOpensAHandleThatWasClosed(t *testing.T) {
	got := javaProgram(t, `
try (var client = new IdnodeClient(List.of(args[0]))) {
  var users = client.hilo("users");
  say(users.nextId());
  users.close();
  try {
    users.nextId();
  } catch (ClosedException e) {
    say("closed");
  }
  say(client.hilo("users").nextId());
  say(client.hilo("users") == client.hilo("users"));
}`, new(listening).serve(t, oneRange))
	if want := "users/1-A\nclosed\nusers/1-A\ntrue\n"; got != want {
		t.Errorf("the calls gave\n%swant\n%s", got, want)
	}
}

// holding is a node that begins to answer what takes a range or a window once it is told to, with /go. It answers /asked as soon as
// one was asked for, and /returned as soon as one came back.
func holding(t *testing.T, node *listening) (endpoint string) {
	asked, going, returned := make(chan struct{}, 9), make(chan struct{}), make(chan struct{}, 9)
	pool := newLeasing(t, 12, time.Minute, 100, false)
	return node.serve(t, func(w http.ResponseWriter, r *http.Request) {
		method := path.Base(r.URL.Path)
		answer := pool.answer
		if strings.HasSuffix(method, "Range") {
			answer = oneRange
		}
		switch method {
		case "asked":
			<-asked
		case "go":
			close(going)
		case "returned":
			<-returned
		case "NextRange", "AcquireWorker":
			asked <- struct{}{}
			<-going
			answer(w, r)
		default:
			answer(w, r)
			returned <- struct{}{}
		}
	})
}

// givenBack are the ranges that came back, each with the last number taken, and how many windows.
func (l *listening) givenBack() string {
	var ranges []any
	windows := 0
	for _, one := range l.asked {
		switch one.method {
		case "ReturnRange":
			ranges = append(ranges, one.fields["last"])
		case "ReleaseWorker":
			windows++
		}
	}
	return fmt.Sprint(ranges, windows)
}

// TestJavaGivesBackInSpiteOfAnInterrupt, as every shutdownNow has one: what a handle holds, and what is on its way.
func TestJavaGivesBackInSpiteOfAnInterrupt(t *testing.T) {
	const begin = `
var minute = Duration.ofMinutes(1);
var client = new IdnodeClient(List.of(args[0]), new IdnodeConfig().withTimeout(minute).withTryTimeout(minute));
var users = client.hilo("users");
var orders = client.snowflake("orders");
`
	for _, closers := range []string{"users::close, orders::close", "client::close"} {
		var node listening
		got := javaProgram(t, begin+`
new java.net.URL("http://" + args[0] + "/go").openStream().close();
users.nextId();
orders.nextId();
for (var closer : List.<Runnable>of(`+closers+`)) {
  Thread.currentThread().interrupt();
  closer.run();
  if (!Thread.interrupted()) say("the flag is gone");
}
client.close();
`, holding(t, &node))
		if want := "[1] 1"; got != "" || node.givenBack() != want {
			t.Errorf("after %s it says %s, and what came back is %s, want %s", closers, got, node.givenBack(), want)
		}
		node = listening{}
		got = javaProgram(t, begin+`
for (var call : List.<Callable<?>>of(users::nextId, orders::nextId)) client.async(call);
for (var i = 0; i < 2; i++) new java.net.URL("http://" + args[0] + "/asked").openStream().close();
var closing = new ArrayList<Thread>();
for (var closer : List.<Runnable>of(`+closers+`)) {
  var one = new Thread(() -> {
    Thread.currentThread().interrupt();
    closer.run();
    if (!Thread.interrupted()) say("the flag is gone");
  });
  closing.add(one);
  one.start();
}
for (var handle : List.<Callable<?>>of(users::nextId, orders::nextId)) {
  try {
    for (; ; ) handle.call(); // Until it is closed.
  } catch (ClosedException e) {
    closing.get(0).interrupt();
  }
}
new java.net.URL("http://" + args[0] + "/go").openStream().close();
for (var one : closing) one.join();
client.close();
`, holding(t, &node))
		if want := "[0] 1"; got != "" || node.givenBack() != want {
			t.Errorf("after %s on the way it says %s, and what came back is %s, want %s", closers, got, node.givenBack(), want)
		}
	}
}

// TestJavaTellsOfWhatIsNotGivenBack: what comes when the time of closing is over goes back then, and who closes hears of it.
// So does who closes again.
func TestJavaTellsOfWhatIsNotGivenBack(t *testing.T) {
	var node listening
	got := javaProgram(t, `
var tasks = new LinkedBlockingQueue<Runnable>();
var client = new IdnodeClient(List.of(args[0]), new IdnodeConfig().withTimeout(Duration.ofSeconds(4)).withTryTimeout(Duration.ofSeconds(4)).withExecutor(tasks::add));
var users = client.hilo("users");
var orders = client.snowflake("orders");
var closing = List.<Callable<?>>of(() -> { users.close(); return 1; }, () -> { orders.close(); return 1; }).stream().map(client::async).toList();
Thread.sleep(1500); // The time of closing is that of the call in the background.
for (var call : List.<Callable<?>>of(users::nextId, orders::nextId)) {
  var caller = new Thread(() -> {
    try {
      call.call();
    } catch (Exception e) {
      return;
    }
  });
  caller.start();
}
for (var i = 0; i < 2; i++) new java.net.URL("http://" + args[0] + "/asked").openStream().close();
while (!tasks.isEmpty()) new Thread(tasks.take()).start();
for (var one : closing) {
  try {
    one.join();
  } catch (CompletionException e) {
    say(e.getCause().getClass().getSimpleName());
  }
}
new java.net.URL("http://" + args[0] + "/go").openStream().close();
for (var i = 0; i < 2; i++) new java.net.URL("http://" + args[0] + "/returned").openStream().close();
client.close();
`, holding(t, &node))
	if want := "[0] 1"; got != "OutcomeUnknownException\nOutcomeUnknownException\n" || node.givenBack() != want {
		t.Errorf("it says %s, and what came back is %s, want %s", got, node.givenBack(), want)
	}
	got = javaProgram(t, `
var client = new IdnodeClient(List.of(args[0]), new IdnodeConfig().withTimeout(Duration.ofSeconds(5)));
var users = client.hilo("users");
users.nextId();
for (var closer : List.<Runnable>of(users::close, users::close, client::close)) {
  try {
    closer.run();
  } catch (PermissionDeniedException e) {
    say(e.reason());
  }
}
`, new(listening).serve(t, func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) == "NextRange" {
			oneRange(w, r)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"code":"permission_denied","message":"because","details":[{"debug":{"domain":"idnode","reason":"PERMISSION_DENIED"}}]}`)
	}))
	if want := strings.Repeat("PERMISSION_DENIED\n", 3); got != want {
		t.Errorf("it says %s, want %s", got, want)
	}
}

// TestJavaLosesNothingWithoutThreads: where no thread can be started, numbers at hand are given, and a call that needs a thread fails
// as others do.
func TestJavaLosesNothingWithoutThreads(t *testing.T) {
	if _, err := exec.LookPath("prlimit"); err != nil {
		t.Skip(err)
	}
	t.Setenv("JDK_JAVA_OPTIONS", "-Xss16m -XX:+UseSerialGC -Xlog:disable") // The stack of a thread is what does not fit any more.
	var node listening
	got := javaProgram(t, `
var client = new IdnodeClient(List.of(args[0]));
var users = client.hilo("users");
say(users.nextId());
long size = Long.parseLong(java.nio.file.Files.readString(java.nio.file.Path.of("/proc/self/statm")).split(" ")[0]) * 4096;
new ProcessBuilder("prlimit", "--pid", "" + ProcessHandle.current().pid(), "--as=" + (size + (15 << 20))).inheritIO().start().waitFor();
try {
  for (; ; ) {
    var idle = new Thread(() -> { for (; ; ) java.util.concurrent.locks.LockSupport.park(); });
    idle.setDaemon(true);
    idle.start();
  }
} catch (OutOfMemoryError e) {
  say("full");
}
for (var call : List.<Runnable>of(() -> users.nextIds(20), () -> client.snowflake("orders").nextId())) {
  try {
    call.run();
  } catch (IdnodeException e) {
    say(e.getCause().getClass().getSimpleName() + " " + e.ids());
  }
}
client.nextRange("users");
client.hilo("others");
client.close();
say(client.toString().contains("closed"));
`, node.serve(t, oneRange))
	if want := "users/1-A\nfull\nOutOfMemoryError [users/2-A, users/3-A, users/4-A, users/5-A, users/6-A, users/7-A, users/8-A, users/9-A]\n" +
		"OutOfMemoryError []\ntrue\n"; got != want {
		t.Errorf("it says\n%swant\n%s", got, want)
	}
}

// TestJavaReadsTheAnswerToWhatIsNotTaken: a node may refuse a large request before it has read all of it, and stop reading.
func TestJavaReadsTheAnswerToWhatIsNotTaken(t *testing.T) {
	server := httptest.NewServer(greeting(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"code":"resource_exhausted","message":"because","details":[{"debug":{"domain":"idnode","reason":"QUOTA"}}]}`)
	}))
	t.Cleanup(server.Close)
	got := javaProgram(t, `
try (var client = new IdnodeClient(List.of(args[0]), new IdnodeConfig().withTimeout(Duration.ofSeconds(20)))) {
  try {
    client.claim("x".repeat(5_000_000));
  } catch (QuotaException e) {
    say(e.outcomeUnknown());
  }
}`, strings.TrimPrefix(server.URL, "http://"))
	if want := "false\n"; got != want {
		t.Errorf("the calls ended with %s, want %s", got, want)
	}
}

// TestJavaNamesClasses: a class that was made from another one has its collection, and one without a name none.
func TestJavaNamesClasses(t *testing.T) {
	got := javaProgram(t, `
class Order {}
class Order$HibernateProxy extends Order {}
Runnable hidden = () -> {};
var proxy = java.lang.reflect.Proxy.newProxyInstance(Program.class.getClassLoader(), new Class<?>[] {Runnable.class}, (p, m, a) -> null);
try (var client = new IdnodeClient(List.of("127.0.0.1:1"))) {
  say(IdnodeClient.tagOf(Order.class) + " " + IdnodeClient.tagOf(Order$HibernateProxy.class));
  for (var type : List.of(new Object() {}.getClass(), hidden.getClass(), proxy.getClass(), int[].class, Order[].class, int.class)) {
    try {
      say(client.idFor(type));
    } catch (IllegalArgumentException e) {
      say("none");
    }
  }
}`)
	if want := "orders orders\n" + strings.Repeat("none\n", 6); got != want {
		t.Errorf("the classes are %s, want %s", got, want)
	}
}

// TestJavaLogs: a logger hears of tries that failed and of looks.
func TestJavaLogs(t *testing.T) {
	s := newScript(testCase{Server: []exchange{
		{Method: "NextIdentity", Lose: true},
		{Method: "NextIdentity", Answer: json.RawMessage(seven)},
	}})
	got := javaProgram(t, `
var log = java.util.logging.Logger.getLogger("io.github.idnode");
log.setLevel(java.util.logging.Level.ALL);
var heard = new ConcurrentLinkedQueue<String>();
log.addHandler(new java.util.logging.Handler() {
  public void publish(java.util.logging.LogRecord line) { heard.add(line.getLevel() + " " + line.getMessage()); }
  public void flush() {}
  public void close() {}
});
try (var client = new IdnodeClient(List.of(args[0]))) {
  client.identity("invoices").next();
}
heard.forEach(Program::say);
`, s.serveHTTP(t, 1)[0])
	s.end(t)
	for _, want := range []string{
		"FINE looks for the leader among ", "FINE 127.0.0.1:.* leads", "FINE IdsService/NextIdentity is tried again after ",
	} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("nobody said %q in\n%s", want, got)
		}
	}
}

// TestJavaTakesNothingThatIsNull: what is missing is said before anybody is asked.
func TestJavaTakesNothingThatIsNull(t *testing.T) {
	var node listening
	got := javaProgram(t, `
var client = new IdnodeClient(List.of(args[0]));
List<Callable<?>> calls = List.of(
    () -> new IdnodeClient(null), () -> new IdnodeClient(List.of(args[0]), null), () -> new IdnodeClient(Collections.singletonList(null)),
    () -> client.next(null), () -> client.next("a/", null), () -> client.nextN("a/", 1, new NextOptions().withSeparator(null)),
    () -> client.nextN("a/", 1, new NextOptions().withCall(null)), () -> client.identity(null), () -> client.identity("a", null),
    () -> client.identity("a").next(null), () -> client.identity("a").get(null), () -> client.identity("a").seed(7, null),
    () -> client.identity("a").delete(null), () -> client.identity("a").forget(null), () -> client.identities(null),
    () -> client.identities("", null), () -> client.claims(null), () -> client.claims("", null), () -> client.series(null),
    () -> client.snowflake(null), () -> client.snowflake("a", null), () -> client.snowflake("a").nextId(null), () -> client.snowflake("a").nextIds(1, null),
    () -> { client.claim(null); return null; }, () -> { client.claim("a", null); return null; }, () -> { client.release(null); return null; },
    () -> client.hilo(null), () -> client.hilo("a", null), () -> client.hilo("a").next(null), () -> client.hilo("a").nextIds(1, null),
    () -> client.idFor(null), () -> client.nextRange(null), () -> client.nextRange("a", null), () -> client.returnRange("a", null, 1),
    () -> client.async(null), () -> new RangeOptions().withLast(null), () -> new TlsFiles().withCa(null),
    () -> client.series("a").take(null), () -> client.series("a").take(Collections.singletonList(null)), () -> client.series("a").take(List.of("k"), null),
    () -> client.series("a").confirm(null), () -> client.series("a").confirm(NumberOf.keys("k"), null), () -> client.series("a").voidNumbers(NumberOf.keys("k"), null),
    () -> client.series("a").release(null), () -> client.series("a").find(null), () -> client.series("a").find("k", null),
    () -> NumberOf.keys((String) null), () -> new RequestId(null), () -> new IdnodeConfig().withTimeout(null), () -> new IdnodeConfig().withLabel(null),
    () -> { client.setEndpoints(null); return null; }, () -> IdnodeClient.fromUrl(null), () -> IdnodeClient.fromUrl("idnode+http://a:1", null),
    () -> new IdnodeConfig().withDatabase(null), () -> new IdnodeConfig().withClusterId(null), () -> new IdnodeConfig().withTlsServerName(null),
    () -> new IdnodeConfig().withFailFastAfter(null), () -> new IdnodeConfig().withObserver(null),
    () -> new TakeOptions().withValues(null), () -> new TakeOptions().withLabel(null));
for (var i = 0; i < calls.size(); i++) {
  try {
    say(i + " gave " + calls.get(i).call());
  } catch (NullPointerException e) {
    continue;
  }
}
client.close();
`, node.serve(t, giveSeven))
	if got != "" || len(node.asked) > 0 {
		t.Errorf("%d calls, %s", len(node.asked), got)
	}
}

// TestJavaHoldsNoMonitors: until Java 24 a virtual thread that waits in a synchronized block or method pins the thread
// that carries it.
func TestJavaHoldsNoMonitors(t *testing.T) {
	languages[2].need(t)
	if err := compiled(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(classes, "io/github/idnode/*.class"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	files = slices.DeleteFunc(files, func(file string) bool { return strings.HasPrefix(filepath.Base(file), "Conformance") })
	code, err := exec.Command("javap", append([]string{"-p", "-c"}, files...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, code)
	}
	if found := regexp.MustCompile(`.*(monitorenter|synchronized|java/lang/Object\.(wait|notify)).*`).FindString(string(code)); found != "" {
		t.Error(found)
	}
}

// TestJavaConnectsAFewAtATime: handshakes of all callers at once would take a busy machine so long that each is given up,
// and none ever ends.
func TestJavaConnectsAFewAtATime(t *testing.T) {
	const most = 6 // Four for calls, and what looks for the leader.
	certs := harness.Certificates(t, "A")
	var now, peak atomic.Int64
	server := httptest.NewUnstartedServer(greeting(giveSeven))
	server.TLS = trusting(t, certs)
	server.TLS.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		n := now.Add(1)
		for have := peak.Load(); n > have && !peak.CompareAndSwap(have, n); have = peak.Load() {
		}
		<-time.After(30 * time.Millisecond)
		now.Add(-1)
		return nil, nil // The server's own.
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	got := javaProgram(t, `
var config = new IdnodeConfig().withTls(new TlsFiles().withCa(java.nio.file.Path.of(args[1]))
    .withCert(java.nio.file.Path.of(args[2])).withKey(java.nio.file.Path.of(args[3])));
try (var client = new IdnodeClient(List.of(args[0]), config.withTimeout(Duration.ofMinutes(1)))) {
  var calls = new ArrayList<CompletableFuture<Long>>();
  for (var i = 0; i < 64; i++) calls.add(client.async(client.identity("invoices")::next));
  say(calls.stream().mapToLong(CompletableFuture::join).sum());
}
`, strings.TrimPrefix(server.URL, "https://"), tlsOf(certs, certs).CA, tlsOf(certs, certs).Cert, tlsOf(certs, certs).Key)
	if want := "448\n"; got != want || peak.Load() > most {
		t.Errorf("the calls gave %s, with %d handshakes at once", got, peak.Load())
	}
}
