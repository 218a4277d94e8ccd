package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/history"
	"github.com/idnode/idnode/test/history/check"
	"github.com/idnode/idnode/test/tier"
)

// tlsTask names the files of a client's certificate.
type tlsTask struct {
	CA   string `json:"ca"`
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// tlsOf names the CA in one folder, and the client's certificate in another.
func tlsOf(ca, own string) *tlsTask {
	return &tlsTask{CA: filepath.Join(ca, "ca.crt"), Cert: filepath.Join(own, "client.crt"), Key: filepath.Join(own, "client.key")}
}

// loadTask has a runner take values of an identity and HiLo ids until its input ends, or Snowflake ids of
// a pool.
type loadTask struct {
	Endpoints []string `json:"endpoints"`
	TLS       *tlsTask `json:"tls,omitempty"`
	Load      load     `json:"load"`
}

// callers is how many of a client take values at once.
const callers = 64

type load struct {
	// Callers is how many threads or promises there are; Client is the number of the
	// first.
	Callers int    `json:"callers"`
	Client  int64  `json:"client"`
	Name    string `json:"name,omitempty"`
	Tag     string `json:"tag,omitempty"`
	Pool    string `json:"pool,omitempty"`
}

// took is one line of a runner: a value that a call took between two times, and an id.
// On Linux the monotonic clocks of all processes are the same one.
type took struct {
	Client       int64
	Call, Return int64
	Value        int64
	ID           string
	Error        string
}

// book is what the clients got.
type book struct {
	mu  sync.Mutex
	ops []history.Op
	ids map[string]bool
	// wrong holds errors, and ids that came twice.
	wrong []string
}

func (b *book) add(line []byte) {
	var got took
	err := json.Unmarshal(line, &got)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err != nil || got.Error != "":
		b.wrong = append(b.wrong, fmt.Sprintf("%s %v", line, err))
	case b.ids[got.ID]:
		b.wrong = append(b.wrong, "twice: "+got.ID)
	}
	b.ids[got.ID] = true
	b.ops = append(b.ops, history.Op{
		Kind: history.Next, Client: got.Client, Name: "called", Call: got.Call, Return: got.Return, Outcome: history.OK,
		Blocks: []history.Block{{First: got.Value, Last: got.Value}},
	})
}

func (b *book) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.ops)
}

// await waits until the clients got n more values.
func (b *book) await(t *testing.T, n int) {
	t.Helper()
	end := b.count() + n
	for deadline := time.Now().Add(30 * time.Second); b.count() < end; {
		if time.Now().After(deadline) {
			t.Fatalf("%d values of %d", b.count(), end)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// judge checks that nothing came twice or out of order, that nothing is missing, and
// that no call failed.
func (b *book) judge(t *testing.T) {
	t.Helper()
	for _, wrong := range b.wrong[:min(len(b.wrong), 20)] {
		t.Error(wrong)
	}
	r := check.Ops(b.ops, check.Options{})
	for _, v := range r.Violations {
		t.Error(v)
	}
	if r.Holes > 0 {
		t.Errorf("%d values are missing", r.Holes)
	}
	t.Logf("%d values, %d HiLo ids", len(b.ops), len(b.ids))
}

// killing is how long leaders are killed: IDNODE_E2E_CLIENTS, or a moment.
func killing(t *testing.T) time.Duration {
	text := os.Getenv("IDNODE_E2E_CLIENTS")
	if text == "" {
		return 5 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestLeadersKilled kills one leader after the other while 64 callers of each client
// take values and HiLo ids, with TLS: no number comes twice, none is missing, and no
// call fails.
func TestLeadersKilled(t *testing.T) {
	tier.Long(t)
	certs := harness.Certificates(t, "A", "B", "C")
	eachLanguage(t, func(t *testing.T, l language) {
		c := harness.StartCluster(t, harness.Config{Certs: certs})
		b := &book{ids: make(map[string]bool)}
		stop := l.takeIDs(t, c, certs, b)
		kills := 0
		for begin := time.Now(); time.Since(begin) < killing(t); kills++ {
			b.await(t, 200)
			leader := c.Leader(t)
			leader.Process.Kill()
			b.await(t, 200)
			leader.Start(t)
			c.WaitReady(t)
		}
		stop()
		t.Logf("%d leaders were killed", kills)
		b.judge(t)
		c.Agree(t)
	})
}

// takeIDs starts the callers of a client. stop waits until all have ended.
func (l language) takeIDs(t *testing.T, c *harness.Cluster, certs string, b *book) (stop func()) {
	t.Helper()
	return l.load(t, c, certs, load{Callers: callers, Client: 1, Name: "called", Tag: "users"}, b.add)
}

// load starts a runner, and has add take its lines.
func (l language) load(t *testing.T, c *harness.Cluster, certs string, what load, add func([]byte)) (stop func()) {
	t.Helper()
	var endpoints []string
	for _, n := range c.Nodes {
		endpoints = append(endpoints, n.HTTP)
	}
	r := l.start(t)
	work := loadTask{Endpoints: endpoints, Load: what}
	if certs != "" {
		work.TLS = tlsOf(certs, certs)
	}
	r.task(t, work)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			line, err := r.out.ReadBytes('\n')
			if line = bytes.TrimSpace(line); len(line) > 0 {
				add(line)
			}
			if err != nil {
				return
			}
		}
	}()
	return func() { _ = r.in.Close(); <-done }
}
