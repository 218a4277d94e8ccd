package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/internal/freeport"
	"github.com/idnode/idnode/server/tlsconf"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

const (
	// unreadStreams are those of one connection whose replies are not read, and
	// unreadMemory is what they may cost the node.
	unreadStreams = 1_000
	unreadMemory  = 200 << 20
)

// TestUnreadRepliesTakeLittleMemory: one caller asks for as much as it can, in every way
// there is, and reads nothing. The node's memory stays within its bound, others are
// served meanwhile, and so is this one when it is back.
func TestUnreadRepliesTakeLittleMemory(t *testing.T) {
	tier.Long(t)
	certs := harness.CertificatesWith(t, []string{"greedy"}, "A")
	large := &idnodev1.GenerateRequest{Template: strings.Repeat("x", 79) + "/", Count: 10_000}
	for _, attack := range []struct {
		name, method string
		message      proto.Message
	}{
		{"large answers of streams", idnodev1.IdsService_Exchange_FullMethodName, exchangeOf(8, large)},
		// Far more calls than one stream may have in flight.
		{"refusals of streams", idnodev1.IdsService_Exchange_FullMethodName, exchangeOf(8_000, &idnodev1.GenerateRequest{})},
		{"large answers of calls", idnodev1.IdsService_Generate_FullMethodName, large},
		{
			"blocks without end", idnodev1.IdsService_StreamServerSideIds_FullMethodName,
			&idnodev1.StreamServerSideIdsRequest{Template: "orders/", BlockSize: 1},
		},
	} {
		t.Run(attack.name, func(t *testing.T) {
			n := harness.StartCluster(t, harness.Config{Size: 1, Direct: true, Certs: certs}).Nodes[0]
			ledger := harness.NewLedger(t)
			take(t, n, ledger, "orders")
			before := settledMemory(t, n)
			greedy := greedyClient(t, n, certs)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			message, err := proto.Marshal(attack.message)
			if err != nil {
				t.Fatal(err)
			}
			for range unreadStreams {
				stream, err := beginStream(ctx, greedy, attack.method, message)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = stream.Header() // Many messages that are not whole would end the connection.
			}
			harness.Eventually(t, 20*time.Second, "what was asked for is held", func(context.Context) error {
				if held := heldBytes(t, n, certs); held < 16<<20 {
					return fmt.Errorf("%d bytes are held", held)
				}
				return nil
			})
			if _, err := healthv1.NewHealthClient(greedy.Conn).Check(ctx, &healthv1.HealthCheckRequest{Service: "idnode.live"}); err != nil {
				t.Errorf("health, while much is held for the caller: %v", err)
			}
			after := settledMemory(t, n)
			t.Logf("%d MB, %d MB before", after>>20, before>>20)
			if after-before > unreadMemory {
				t.Errorf("%d streams of one caller cost %d MB", unreadStreams, (after-before)>>20)
			}
			take(t, n, ledger, "orders")
			cancel()
			harness.Eventually(t, 20*time.Second, "what was held for the caller is given back", func(ctx context.Context) error {
				_, err := greedy.Ids.Generate(ctx, large)
				return err
			})
		})
	}
}

// TestMessagesAtOnceTakeLittleMemory: the first messages of all streams come at once, with
// as many calls as a message may have, and once more on the next connection: this one may
// be ended.
func TestMessagesAtOnceTakeLittleMemory(t *testing.T) {
	tier.Long(t)
	certs := harness.CertificatesWith(t, []string{"greedy"}, "A")
	n := harness.StartCluster(t, harness.Config{Size: 1, Direct: true, Certs: certs}).Nodes[0]
	ledger := harness.NewLedger(t)
	take(t, n, ledger, "orders")
	before := settledMemory(t, n)
	message, err := proto.Marshal(exchangeOf(8_000, &idnodev1.GenerateRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		greedy := greedyClient(t, n, certs)
		var streams sync.WaitGroup
		for range unreadStreams {
			streams.Go(func() { _, _ = beginStream(t.Context(), greedy, idnodev1.IdsService_Exchange_FullMethodName, message) })
		}
		streams.Wait()
		take(t, n, ledger, "orders")
	}
	after := settledMemory(t, n)
	t.Logf("%d MB, %d MB before", after>>20, before>>20)
	if after-before > unreadMemory {
		t.Errorf("%d messages at once cost %d MB", unreadStreams, (after-before)>>20)
	}
}

// TestConnectionsOfACaller: one caller has so many connections and no more, over gRPC and
// HTTP together, and hears why; that keeps no other caller out; and those that end make room.
func TestConnectionsOfACaller(t *testing.T) {
	const most = 4
	certs := harness.CertificatesWith(t, []string{"greedy"}, "A")
	n := harness.StartCluster(t, harness.Config{
		Size: 1, Direct: true, Certs: certs, Tuning: failpoint.Tuning{CallerConnections: most},
	}).Nodes[0]
	ask := func(c *harness.Client) error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := c.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
		return err
	}
	over := func() *http.Client {
		transport := &http.Transport{TLSClientConfig: harness.ClientTLS(t, certs, "greedy")}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport, Timeout: 5 * time.Second}
	}
	page := func(c *http.Client) error {
		answer, err := c.Get("https://" + n.HTTP + "/build/version")
		if err != nil {
			return err
		}
		text, err := io.ReadAll(answer.Body)
		if err == nil && answer.StatusCode != http.StatusOK {
			err = errors.New(string(text))
		}
		return errors.Join(err, answer.Body.Close())
	}
	toldWhy := func(err error) bool { return err != nil && strings.Contains(err.Error(), "as many connections") }
	var open []*harness.Client
	for range most / 2 {
		open = append(open, harness.DialAs(t, n.GRPC, certs, "greedy"))
		if err := errors.Join(ask(open[len(open)-1]), page(over())); err != nil {
			t.Fatal(err)
		}
	}
	more := harness.DialAs(t, n.GRPC, certs, "greedy")
	if err := ask(more); !toldWhy(err) {
		t.Errorf("a caller has %d connections, and hears of one more over gRPC: %v", most, err)
	}
	more.Conn.Close() // It would connect again, and take the room that there is later.
	if err := page(over()); !toldWhy(err) {
		t.Errorf("a caller has %d connections, and hears of one more over HTTP: %v", most, err)
	}
	if err := ask(harness.Dial(t, n.GRPC, certs)); err != nil {
		t.Errorf("another caller: %v", err)
	}
	open[0].Conn.Close()
	again := harness.DialAs(t, n.GRPC, certs, "greedy")
	harness.Eventually(t, 10*time.Second, "a connection that ended makes room", func(context.Context) error { return ask(again) })
}

// TestDescriptorsAreKeptForRaftAndCertificates: strangers open as many connections to a
// member as it takes, and more. It refuses them while it still has descriptors, so the
// next leader reaches it, and it reads its new certificate.
func TestDescriptorsAreKeptForRaftAndCertificates(t *testing.T) {
	t.Parallel()
	certs := certificates(t)
	c := harness.StartCluster(t, harness.Config{Certs: certs, Direct: true})
	n := c.Add(t, "X", "--join", c.Nodes[0].GRPC, "--watcher")
	metrics := freeport.For(t)
	n.Start(t, "--metrics", metrics)
	n.Settled(t)
	c.Agree(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: harness.ClientTLS(t, certs, "client")}, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	counts := func(series string) error {
		answer, err := client.Get("https://" + metrics + "/metrics")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(line, series+" "); ok && value != "0\n" {
				return err
			}
		}
		return fmt.Errorf("%s is 0", series)
	}
	const reloads, refused = `idnode_tls_reloads_total{result="ok"}`, `idnode_connections_refused_total{reason="descriptors"}`
	if counts(refused) == nil {
		t.Fatal("connections are refused already")
	}

	n.Process.LimitFiles(t, 2*n.Process.OpenFiles(t))
	besieged, cancel := context.WithCancel(t.Context())
	var siege sync.WaitGroup
	defer siege.Wait()
	defer cancel()
	siege.Go(func() { besiege(besieged, n.GRPC, n.HTTP, metrics) })
	harness.Eventually(t, 20*time.Second, "connections are refused", func(context.Context) error { return counts(refused) })
	if err := tlsconf.MakeCerts(certs, tlsconf.MakeOptions{Nodes: []string{"A", "B", "C", "X"}, Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 20*time.Second, "the new certificate is read", func(context.Context) error { return counts(reloads) })
	leader := c.LeaderAmong(t, c.Nodes[:3])
	leader.Process.Stop(t)
	other := c.LeaderAmong(t, c.Others(leader))
	take(t, other, harness.NewLedger(t), "orders")
	c.Agree(t)
}

// besiege keeps as many connections to ports open as their node takes, until ctx ends.
func besiege(ctx context.Context, ports ...string) {
	var open [300]net.Conn
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		<-tick.C
		at := &open[i%len(open)]
		if *at != nil {
			(*at).Close()
		}
		*at, _ = net.DialTimeout("tcp", ports[i%len(ports)], time.Second)
	}
	for _, conn := range open {
		if conn != nil {
			conn.Close()
		}
	}
}

// exchangeOf is a message with so many calls.
func exchangeOf(calls uint64, req *idnodev1.GenerateRequest) *idnodev1.ExchangeRequest {
	m := &idnodev1.ExchangeRequest{}
	for i := range calls {
		m.Calls = append(m.Calls, &idnodev1.Call{Correlation: i, Call: &idnodev1.Call_Generate{Generate: req}})
	}
	return m
}

// asEncoded sends messages that are encoded already.
type asEncoded struct{ encoding.CodecV2 }

// Marshal implements encoding.CodecV2.
func (asEncoded) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

// greedyClient is one that takes little of what it does not read: windows that grow would
// take it out of the node.
func greedyClient(t *testing.T, n *harness.Node, certs string) *harness.Client {
	return harness.DialAs(t, n.GRPC, certs, "greedy", grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(64<<10))
}

// beginStream begins a stream with one message, and reads nothing.
func beginStream(ctx context.Context, c *harness.Client, method string, message []byte) (grpc.ClientStream, error) {
	codec := asEncoded{encoding.GetCodecV2("proto")}
	many := &grpc.StreamDesc{ServerStreams: true, ClientStreams: method == idnodev1.IdsService_Exchange_FullMethodName}
	stream, err := c.Conn.NewStream(ctx, many, method, grpc.ForceCodecV2(codec))
	if err != nil {
		return nil, err
	}
	_ = stream.SendMsg(message) // The node may have ended the stream.
	return stream, nil
}

// heldBytes is what a node says that it holds for its callers.
func heldBytes(t *testing.T, n *harness.Node, certs string) int64 {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: harness.ClientTLS(t, certs, "client")}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get("https://" + n.HTTP + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "idnode_held_bytes "); ok {
			held, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return int64(held)
		}
	}
	t.Fatal("the node does not tell what it holds")
	return 0
}

// settledMemory is the most memory that a node has had, when that does not grow any more.
func settledMemory(t *testing.T, n *harness.Node) int64 {
	t.Helper()
	most, quiet := n.Process.PeakMemory(t), 0
	harness.Eventually(t, time.Minute, "the node's memory does not grow", func(context.Context) error {
		now := n.Process.PeakMemory(t)
		if now > most+1<<20 {
			most, quiet = now, 0
		}
		if quiet++; quiet < 100 {
			return fmt.Errorf("%d MB", now>>20)
		}
		return nil
	})
	return most
}
