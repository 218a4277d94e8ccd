package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

const (
	// workers are an attacker's calls in flight, over attackConnections, and judged the calls
	// of another caller that are looked at meanwhile, if they do not take longest.
	workers           = 256
	attackConnections = 4
	judged            = 100
	longest           = 20 * time.Second
	// halfLimit is within which time half of another caller's calls are answered, and dearer
	// how much longer they may take than while as many calls are denied: what a call makes
	// the node do must not matter more than that it is made.
	halfLimit = 150 * time.Millisecond
	dearer    = 4
	// memoryLimit is what the node may take for an attack.
	memoryLimit = 150 << 20
	// handovers are the changes of the leader during a flood of Raft's ports, handoverPause the time between
	// them, and strangersOpen the connections that are open at once: more than the kernel keeps back for the
	// ports of three nodes, 4096 each.
	handovers     = 20
	handoverPause = 300 * time.Millisecond
	strangersOpen = 18_000
)

// TestAttacks puts one attack after the other on the leader of a cluster, or on all nodes. Other callers are
// served in good time meanwhile, and afterwards nothing is left of it. IDNODE_E2E_BEFORE names
// an older program, of which the table has the figures too.
func TestAttacks(t *testing.T) {
	tier.Long(t)
	table := &attackTable{}
	if before := os.Getenv("IDNODE_E2E_BEFORE"); before != "" {
		t.Run("before", func(t *testing.T) {
			table.run(t, startHostile(t, before), "before", func(*testing.T, seen, time.Duration) {})
		})
	}
	t.Run("now", func(t *testing.T) { table.run(t, startHostile(t, ""), "now", judge) })
	t.Log("\n" + strings.Join(table.lines, " |\n") + " |")
}

// attackTable has a line for each attack, after those of its head.
type attackTable struct{ lines []string }

func (a *attackTable) add(line int, first, cells string) {
	if line == len(a.lines) {
		a.lines = append(a.lines, "| "+first)
	}
	a.lines[line] += " | " + cells
}

// run adds the figures of one cluster, and judges them.
func (a *attackTable) run(t *testing.T, h *hostile, when string, judge func(*testing.T, seen, time.Duration)) {
	h.prepare(t)
	files := h.openFiles(t)
	var denied time.Duration
	a.add(0, "attack", when+": p50 / p99 / longest | errors | memory")
	a.add(1, "---", "---|---|---")
	for i, attack := range h.attacks() {
		var s seen
		t.Run(attack.name, func(t *testing.T) {
			h.node = h.Leader(t)
			s = h.besides(t, attack.run)
			if attack.name == "calls that are denied" {
				denied = harness.QuantileOfTimes(s.took, 500)
			}
			judge(t, s, max(halfLimit, dearer*denied))
		})
		a.add(i+2, attack.name, s.String())
	}
	harness.Eventually(t, 30*time.Second, "connections are gone", func(context.Context) error {
		if now := h.openFiles(t); now > files+100 {
			return fmt.Errorf("%d open files, before the attacks %d", now, files)
		}
		return nil
	})
}

// openFiles is how many files and connections all nodes have open.
func (h *hostile) openFiles(t *testing.T) (files int) {
	for _, n := range h.Nodes {
		files += n.Process.OpenFiles(t)
	}
	return files
}

// prepare makes a series to be verified and reported, and roles by which the attacker may
// only read and generate.
func (h *hostile) prepare(t *testing.T) {
	t.Helper()
	series, ctx := h.node.Client.Series, t.Context()
	if _, err := series.DefineSeries(ctx,
		&idnodev1.DefineSeriesRequest{Name: "bills", Definition: &idnodev1.SeriesDefinition{Format: "B-{number}"}}); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		var keys []string
		for j := range 1000 {
			keys = append(keys, fmt.Sprintf("%d-%d", i, j))
		}
		if _, err := series.TakeNumbers(ctx, &idnodev1.TakeNumbersRequest{Series: "bills", Keys: keys}); err != nil {
			t.Fatal(err)
		}
	}
	harness.SetRoles(t, h.node,
		harness.Role("operator", "client", idnodev1.Right_RIGHT_CLUSTER), harness.Role("caller", "client", idnodev1.Right_RIGHT_GENERATE),
		harness.Role("reader", "attacker", idnodev1.Right_RIGHT_READ), harness.Role("keeper", "attacker", idnodev1.Right_RIGHT_BACKUP),
		harness.Role("attacker", "attacker", idnodev1.Right_RIGHT_GENERATE))
}

// attack is what is done to a cluster until the context ends, or once.
type attack struct {
	name string
	run  func(context.Context, *testing.T)
}

func (h *hostile) attacks() []attack {
	var number atomic.Int64
	once := func(run func(*testing.T)) func(context.Context, *testing.T) {
		return func(_ context.Context, t *testing.T) { run(t) }
	}
	calls := func(call func(context.Context, *harness.Client)) func(context.Context, *testing.T) {
		return func(ctx context.Context, t *testing.T) { h.callWithoutPause(ctx, t, call) }
	}
	attacks := []attack{
		{"none", func(ctx context.Context, _ *testing.T) { <-ctx.Done() }},
		{"calls that are denied", calls(func(ctx context.Context, c *harness.Client) {
			_, _ = c.Ids.SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{Name: "orders", Value: proto.Int64(1)})
		})},
		{"templates", calls(func(ctx context.Context, c *harness.Client) {
			format := fmt.Sprintf("{number}{v0}{v1:2}{v2}{v3}IEN1DPWGHSZPWULdZSWEG0Ac{v4:1}XBLRX1QIeHYcUC0O1NBeUbB%d", number.Add(1))
			_, _ = c.Series.FormatNumber(ctx, &idnodev1.FormatNumberRequest{Of: &idnodev1.FormatNumberRequest_Format{Format: format}, Number: 1})
		})},
		{"verifications", calls(func(ctx context.Context, c *harness.Client) {
			_, _ = c.Series.VerifySeries(ctx, &idnodev1.VerifySeriesRequest{Series: "bills"})
		})},
		{"reports", calls(func(ctx context.Context, c *harness.Client) {
			_, _ = c.Series.ReportSeries(ctx, &idnodev1.ReportSeriesRequest{Series: "bills"})
		})},
		{"statuses", calls(func(ctx context.Context, c *harness.Client) {
			_, _ = c.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
		})},
		{"reflection", calls(reflect)},
		{"ids without end", calls(func(ctx context.Context, c *harness.Client) {
			stream, err := c.Ids.StreamServerSideIds(ctx, greedy)
			for err == nil {
				_, err = stream.Recv()
			}
		})},
		{"ids without end that nobody reads", calls(func(ctx context.Context, c *harness.Client) {
			if _, err := c.Ids.StreamServerSideIds(ctx, greedy); err == nil {
				<-ctx.Done()
			}
		})},
		{"backups that nobody reads", calls(func(ctx context.Context, c *harness.Client) {
			if backup, err := idnodev1.NewAdminServiceClient(c.Conn).Backup(ctx, &idnodev1.BackupRequest{}); err == nil {
				if _, err := backup.Recv(); err == nil {
					<-ctx.Done()
				}
			}
		})},
		{"scrapes", h.scrape},
		{"calls begun and reset", once(h.rapidResets)},
		{"10,000 silent connections", once(func(t *testing.T) { h.silent(t, 10_000, nil) })},
		{"500 handshakes that never end", once(func(t *testing.T) { h.silent(t, 500, []byte{22, 3, 1, 2, 0, 1}) })},
		{"500 clients that send nothing", once(func(t *testing.T) { h.idle(t, 500) })},
		{"headers byte by byte", once(h.slowHeaders)},
		{"huge frames", once(h.hugeFrames)},
		{"huge headers", once(h.hugeHeaders)},
		{"huge messages", once(h.hugeMessages)},
		{"connections opened and closed", once(h.churn)},
		{"leaders change", once(func(t *testing.T) { h.handOver(t, 0, nil) })},
		{"leaders change, 6,000 silent connections a second to Raft's ports", once(func(t *testing.T) { h.handOver(t, 6_000, nil) })},
		{"leaders change, 3,000 of one byte", once(func(t *testing.T) { h.handOver(t, 3_000, []byte{22}) })},
	}
	for _, idle := range idleFrames {
		at := func(another int) func(context.Context, *testing.T) {
			return func(ctx context.Context, t *testing.T) {
				node := h.Nodes[(slices.Index(h.Nodes, h.node)+another)%len(h.Nodes)]
				h.flood(ctx, t, node, idle.frame)
			}
		}
		attacks = append(attacks, attack{"frames that carry nothing: " + idle.name, at(0)},
			attack{"the same at a node that is not asked: " + idle.name, at(1)})
	}
	return attacks
}

// greedy asks for the largest blocks of server-side ids, without an end.
var greedy = &idnodev1.StreamServerSideIdsRequest{Template: "users/", BlockSize: etag.MaxBlock}

// idleFrames are frames that a server must read, and that bring it nothing (CVE-2019-9512 and the like).
var idleFrames = []struct {
	name  string
	frame []byte
}{
	{"SETTINGS", frame(frameSettings, 0, 0, nil)},
	{"DATA without bytes", frame(frameData, 0, 1, nil)},
	{"DATA of padding", frame(frameData, 0x8, 1, []byte{2, 0, 0})},
	{"PRIORITY", frame(2, 0, 1, make([]byte, 5))},
	{"PING", frame(6, 0, 0, make([]byte, 8))},
	{"WINDOW_UPDATE", frame(8, 0, 0, []byte{0, 0, 0, 1})},
	{"CONTINUATION", frame(9, 0, 1, nil)},
	{"unknown", frame(200, 0, 0, nil)},
}

// flood begins a call, without a right to it, on each of some connections, and then sends the frame as fast
// as the node takes it, over as many more connections as the node ends, until the context ends.
func (h *hostile) flood(ctx context.Context, t *testing.T, node *harness.Node, idle []byte) {
	cfg := h.stranger(t, "nobody")
	cfg.NextProtos = []string{"h2"}
	begin := slices.Concat([]byte(preface), frame(frameSettings, 0, 0, nil), frame(frameHeaders, 0x4, 1, callHeaders()))
	burst := bytes.Repeat(idle, 1000)
	var attackers sync.WaitGroup
	for range 2 * attackConnections {
		attackers.Go(func() {
			for ctx.Err() == nil {
				conn, err := tls.Dial("tcp", node.GRPC, cfg)
				if err != nil {
					continue
				}
				stop := context.AfterFunc(ctx, func() { conn.Close() })
				go func() { _, _ = io.Copy(io.Discard, conn) }()
				for _, err = conn.Write(begin); err == nil; _, err = conn.Write(burst) {
				}
				stop()
				conn.Close()
			}
		})
	}
	attackers.Wait()
}

// callWithoutPause makes an attacker's calls until the context ends.
func (h *hostile) callWithoutPause(ctx context.Context, t *testing.T, call func(context.Context, *harness.Client)) {
	var attackers sync.WaitGroup
	for range attackConnections {
		client := harness.DialAs(t, h.node.GRPC, h.certs, "attacker")
		for range workers / attackConnections {
			attackers.Go(func() {
				for ctx.Err() == nil {
					call(ctx, client)
				}
			})
		}
	}
	attackers.Wait()
}

// reflect asks for the services, and for the description of one, until its stream ends.
func reflect(ctx context.Context, c *harness.Client) {
	stream, err := reflectionv1.NewServerReflectionClient(c.Conn).ServerReflectionInfo(ctx)
	for ; err == nil; _, err = stream.Recv() {
		_ = stream.Send(&reflectionv1.ServerReflectionRequest{
			MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "idnode.v1.IdsService"},
		})
	}
}

// scrape asks for the metrics without a pause.
func (h *hostile) scrape(ctx context.Context, t *testing.T) {
	transport := &http.Transport{TLSClientConfig: harness.ClientTLS(t, h.certs, "attacker"), MaxIdleConnsPerHost: workers / attackConnections}
	defer transport.CloseIdleConnections()
	var scrapers sync.WaitGroup
	for range workers / attackConnections { // Each has a connection of its own.
		scrapers.Go(func() {
			for ctx.Err() == nil {
				req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+h.node.HTTP+"/metrics", nil)
				if answer, err := transport.RoundTrip(req); err == nil {
					_, _ = io.Copy(io.Discard, answer.Body)
					_ = answer.Body.Close()
				}
			}
		})
	}
	scrapers.Wait()
}

// handOver has the leader change while strangers open so many connections a second to Raft's ports, and
// say these words on each.
func (h *hostile) handOver(t *testing.T, perSecond int, words []byte) {
	ctx, cancel := context.WithCancel(t.Context())
	full := make(chan struct{})
	var flood sync.WaitGroup
	defer flood.Wait()
	defer cancel()
	flood.Go(func() { h.openWithoutEnd(ctx, t, perSecond, words, full) })
	<-full
	var took []time.Duration
	for len(took) < handovers {
		begin := time.Now()
		if _, err := h.node.Client.Cluster.TransferLeadership(ctx, &idnodev1.TransferLeadershipRequest{}); err == nil {
			took = append(took, time.Since(begin))
		} else if time.Since(begin) > longest {
			t.Fatal(err)
		}
		harness.Pause(ctx, handoverPause)
	}
	t.Logf("half of %d changes took %s, the longest %s", len(took), harness.QuantileOfTimes(took, 500), slices.Max(took))
	if late := harness.QuantileOfTimes(took, 900); late > usualLimit {
		t.Errorf("of ten changes one took %s, want %s at most", late, usualLimit)
	}
}

// openWithoutEnd opens connections until ctx ends, at a rate that no answer slows down. It closes full
// when as many as are to be are open, and then the oldest for each new one.
func (h *hostile) openWithoutEnd(ctx context.Context, t *testing.T, perSecond int, words []byte, full chan struct{}) {
	var open []int
	begin, isFull := time.Now(), sync.OnceFunc(func() { close(full) })
	defer isFull()
	defer func() {
		for _, socket := range open {
			_ = unix.Close(socket)
		}
	}()
	for made := 0; ctx.Err() == nil && perSecond > 0; harness.Pause(ctx, 2*time.Millisecond) {
		for ; made < int(time.Since(begin).Seconds()*float64(perSecond)); made++ {
			socket, err := openAs(made, h.Nodes[made%len(h.Nodes)].Raft)
			if err != nil {
				t.Error(err) // Too few descriptors: this attack is none.
				return
			}
			_, _ = unix.Write(socket, words)
			if open = append(open, socket); len(open) > strangersOpen {
				isFull()
				_ = unix.Close(open[0])
				open = open[1:]
			}
		}
	}
}

// openAs begins a connection from one of 60 addresses that no member has, and does not wait for it. It
// shares its port numbers with the members: one that binds takes them from all who dial on this host,
// which a stranger elsewhere cannot.
func openAs(stranger int, address string) (int, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	_ = unix.SetsockoptInt(socket, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	_ = unix.SetsockoptLinger(socket, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) // Its port is free again at once.
	_ = unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 66, byte(1 + stranger%60)}})
	to := netip.MustParseAddrPort(address)
	_ = unix.Connect(socket, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}) // It is in progress.
	return socket, nil
}

// seen is what callers saw of an attack.
type seen struct {
	// took are the times of one caller's calls of the attacked node, calm the same without
	// that in which the machine stood still, errors those of all callers.
	took, calm []time.Duration
	errors     []error
	// memory is what the node took for it.
	memory int64
}

// String is its part of a row.
func (s seen) String() string {
	ms := func(share int) float64 { return harness.QuantileOfTimes(s.took, share).Seconds() * 1000 }
	return fmt.Sprintf("%.0f / %.0f / %.0f ms | %d | %d MB", ms(500), ms(990), ms(1000), len(s.errors), s.memory>>20)
}

// judge fails a test if half of the calls took longer than that, or other limits are exceeded.
func judge(t *testing.T, s seen, half time.Duration) {
	t.Helper()
	t.Log(s)
	if harness.QuantileOfTimes(s.took, 500) > half || harness.QuantileOfTimes(s.calm, 990) > usualLimit || len(s.errors) > 0 ||
		s.memory > memoryLimit {
		t.Errorf("%s: want half within %s, 99 of 100 within %s, no error and %d MB at most; %v", s, half, usualLimit, memoryLimit>>20, s.errors)
	}
}

// besides runs an attack as often as it takes until enough calls of another caller were made
// meanwhile. When a machine stood still, that may have brought an election too.
func (h *hostile) besides(t *testing.T, attack func(context.Context, *testing.T)) (s seen) {
	t.Helper()
	h.node.Process.ForgetPeakMemory(t)
	before := h.node.Process.Memory(t)
	stalls := harness.MeasureStalls(t)
	ctx, enough := context.WithTimeout(t.Context(), longest)
	defer enough()
	var good sync.WaitGroup
	var mu sync.Mutex
	attacked, over := context.WithCancel(t.Context())
	defer over()
	for _, n := range h.Nodes {
		good.Go(func() {
			for attacked.Err() == nil {
				begin := time.Now()
				err := h.call(n.Client)
				end := time.Now()
				still := stalls.Between(begin, end)
				if stalls.Longest(begin, end) >= harness.HalfLease {
					still += oneElection
				}
				mu.Lock()
				if err != nil {
					s.errors = append(s.errors, fmt.Errorf("after %s: %w", end.Sub(begin), err))
				}
				if n == h.node {
					s.took, s.calm = append(s.took, end.Sub(begin)), append(s.calm, end.Sub(begin)-still)
				}
				if len(s.took) == judged {
					enough()
				}
				mu.Unlock()
			}
		})
	}
	for first := true; first || ctx.Err() == nil; first = false {
		attack(ctx, t)
	}
	over()
	good.Wait()
	s.memory = max(0, h.node.Process.PeakMemory(t)-before)
	// A new client gets in as well.
	if err := h.call(harness.Dial(t, h.node.GRPC, h.certs)); err != nil {
		s.errors = append(s.errors, err)
	}
	return s
}

// call takes one identity and one server-side id as a good client that tries once.
func (h *hostile) call(c *harness.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	r, err := c.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "orders"})
	if err != nil {
		return err
	}
	h.ledger.Record("orders", "a good client", r.Blocks[0].First, r.Blocks[0].Last)
	_, err = c.Ids.Generate(ctx, &idnodev1.GenerateRequest{Template: greedy.GetTemplate()})
	return err
}
