package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/internal/logqueue"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/node"
	"github.com/idnode/idnode/test/model"
)

// world is everything of one seed.
type world struct {
	plan    plan
	network *network
	quorums *quorums
	// servers are all machines that there ever were; they only become more.
	servers []*server
	// running waits for the machines.
	running sync.WaitGroup
	// ranges is the newest range that a caller was given.
	ranges  atomic.Pointer[heldRange]
	history *recorder
	hashes  hashes
	tracer  *tracer
	// healing is set when no new fault begins any more.
	healing atomic.Bool
	// clusterID is the id of the cluster, once a client knows it.
	clusterID atomic.Pointer[string]
	ctx       context.Context
	log       *slog.Logger

	mu       sync.Mutex
	findings []string
}

// stream returns the random numbers for one purpose.
func (p plan) stream(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(p.seed, purpose+16)) }

func newWorld(ctx context.Context, p plan, log io.Writer) *world {
	w := &world{
		plan: p, ctx: ctx, network: newNetwork(p.stream(0), p.latency, p.jitter, p.slow.network),
		history: &recorder{}, hashes: newHashes(),
	}
	w.quorums, w.tracer = newQuorums(w), newTracer(w)
	w.log = slog.New(slog.DiscardHandler)
	if log != nil {
		w.log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	for i := range p.nodes {
		w.servers = append(w.servers, newServer(w, i))
	}
	return w
}

// newServer makes a machine whose host has the letter of that number, and whose
// node has it as its tag at first.
func newServer(w *world, number int) *server {
	host := string(rune('A' + number))
	s := &server{
		world: w, host: host, nodeTag: host, disk: newDisk(w.plan.stream(100 + uint64(number))),
		random: w.plan.stream(200 + uint64(number)), numbers: w.plan.stream(800 + uint64(number)),
	}
	s.disk.faults.latency = w.plan.diskLatency
	w.network.moveTo(s, host)
	if s.random.IntN(2) == 0 {
		s.disk.faults.slow = w.plan.slow.disk
	}
	return s
}

// founders are the machines whose nodes found the cluster.
func (w *world) founders() []*server {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.servers[:w.plan.nodes:w.plan.nodes]
}

// all are the machines that there ever were.
func (w *world) all() []*server {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.servers)
}

// machines are those that belong to the cluster, or may.
func (w *world) machines() []*server {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.servers), func(s *server) bool { return s.left.Load() })
}

// found records something that must not happen.
func (w *world) found(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.findings = append(w.findings, fmt.Sprintf(format, args...))
}

func (w *world) failures() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.findings...)
}

// server is a machine: its disk, and the processes that run on it one after the
// other.
type server struct {
	world *world
	// host is the machine's permanent name.
	host   string
	disk   *disk
	random *rand.Rand

	// left says that the node was removed, or is about to be.
	left atomic.Bool
	// off says that no more processes run on the machine.
	off atomic.Bool
	// wiped says that the disk was lost, and the node not removed yet.
	wiped atomic.Bool
	// changed says that the state of the node was changed beside the log.
	changed atomic.Bool
	// ahead is by how many nanoseconds the machine's clock is ahead, as the log sees it.
	ahead atomic.Int64
	// rewound says that the disk was set back to an older copy, and not wiped yet.
	rewound atomic.Bool
	// trusts says that an operator trusts the disk, and empty that it is not the
	// machine's own, but an empty one.
	trusts, empty atomic.Bool
	// ceilings are those that the cluster keeps for the node's server-side ids.
	ceilings ceilings

	mu      sync.Mutex
	process *process
	// unread, if set, is over when somebody reads what the machine's processes log.
	unread context.Context
	// held, if set, is over before the next process starts.
	held context.Context
	// nodeTag is the node's tag. join says that it is to join a cluster that is
	// there, and not to found one.
	nodeTag string
	join    bool
	// token is what it joins with. Another machine may have the same.
	token string
	// numbers are drawn for processes. The next one has resumed, if that is not 0.
	numbers *rand.Rand
	resumed uint64
}

// tag is the tag of the machine's node.
func (s *server) tag() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodeTag
}

// process is one run of a node.
type process struct {
	server *server
	// number is the process's random number.
	number  uint64
	port    *port
	session *session
	stop    context.CancelFunc
	// began is when it began, and stopping is closed when it is told to stop.
	began    time.Time
	stopping <-chan struct{}
	// member is the Raft id of the node, once its store is open.
	member string
	// etags is what the model knows of them, once they are open; the tracer guards it.
	etags *model.Etags
	// gone is closed when the process has ended, for any reason.
	gone     chan struct{}
	goneOnce sync.Once
	// killed says that its end, with any error, is no fault of its own.
	killed atomic.Bool

	mu  sync.Mutex
	err error
}

// end records why the node ended.
func (p *process) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

// failure is why the node ended.
func (p *process) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// The ports of all machines.
const grpcPort, raftPort = ":7400", ":7401"

func (s *server) grpcAddress() string { return s.advertised() + grpcPort }

// run starts processes, one after the other, until the world ends.
func (s *server) run() {
	for s.world.ctx.Err() == nil && !s.off.Load() {
		p, held := s.start()
		if p == nil {
			<-held.Done()
			continue
		}
		select {
		case <-p.gone:
		case <-s.world.ctx.Done():
			p.kill(false)
			return
		}
		s.rest()
	}
}

// rest is the time between two processes: the next one comes before an election,
// in the middle of one, or long after it.
func (s *server) rest() {
	s.mu.Lock()
	limit := pick(s.random, 100*time.Millisecond, 800*time.Millisecond, 3*time.Second)
	if s.world.healing.Load() {
		limit = 500 * time.Millisecond
	}
	d := time.Duration(s.random.Int64N(int64(limit)))
	held := s.held != nil
	s.mu.Unlock()
	if !held {
		sleep(s.world.ctx, d)
	}
}

// hold keeps processes from starting before release is called.
func (s *server) hold() (release func()) { return s.begin(&s.held) }

// begin begins what is over when end is called, or the world ends.
func (s *server) begin(what *context.Context) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	begun, end := context.WithCancel(s.world.ctx)
	*what = begun
	return end
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// start starts a process, unless none may start: then it returns when that ends.
func (s *server) start() (p *process, held context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil && s.held.Err() == nil {
		return nil, s.held
	}
	s.held = nil
	ctx, cancel := context.WithCancel(context.Background())
	p = &process{
		server: s, port: s.world.network.port(s.host), stop: cancel, began: time.Now(), stopping: ctx.Done(),
		gone: make(chan struct{}),
	}
	p.session = s.disk.mount(
		p.kill,
		func(index uint64) { s.world.found("node %s has lost entry %d of its log", s.host, index) },
	)
	p.number, s.resumed = cmp.Or(s.resumed, s.numbers.Uint64()), 0
	s.process = p
	go p.run(ctx)
	return p, nil
}

// current returns the process that runs, or the last one.
func (s *server) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// run is a node's process from its beginning to its end.
func (p *process) run(ctx context.Context) {
	defer p.kill(false)
	log, endLog := p.server.logger()
	defer endLog()
	lookupHost := p.server.world.network.lookupHost
	if !p.server.world.plan.named {
		lookupHost = nil
	}
	n, err := node.New(node.Options{
		Config: p.config(), Logger: log, Version: "simulated", Process: p.number,
		Now:     func() time.Time { return time.Now().Add(p.server.clock()) },
		Storage: storage{p.session, p.server.world.plan, p}, Network: p.port, Watch: p.watch, LookupHost: lookupHost,
		Room: p.server.disk.room,
	})
	if err == nil {
		err = n.Run(ctx)
	}
	// A leadership transfer that is interrupted leaves Raft refusing everything
	// (hashicorp/raft issue 696), and only a new process gets out of that.
	p.end(err)
	excused := p.killed.Load() || p.session.wasHurt() || errors.Is(err, raft.ErrLeadershipTransferInProgress)
	if err != nil && !p.server.mayEnd(err) && (!excused || errors.Is(err, member.ErrDiverged)) {
		p.server.world.found("node %s ended by itself: %v", p.server.host, err)
	}
}

// logger is where a process of the machine logs, until end is called.
func (s *server) logger() (log *slog.Logger, end func()) {
	h, end := s.world.log.Handler().WithAttrs([]slog.Attr{slog.String("node", s.host)}), func() {}
	if s.world.plan.scenario == unread {
		q := logqueue.New(logReader{s}, func(int) error { return nil })
		h, end = slog.NewMultiHandler(h, messages{q}), q.Close
	}
	return slog.New(ceilingHandler{Handler: h, ceilings: &s.ceilings, looks: s.world.plan.scenario == copies ||
		slices.Contains(s.world.plan.faults, setBack)}), end
}

// ended says whether the machine's process has ended.
func (s *server) ended() bool {
	select {
	case <-s.current().gone:
		return true
	default:
		return false
	}
}

// kill ends the process at once. What it still does reaches no other node.
func (p *process) kill(silent bool) {
	p.goneOnce.Do(func() {
		p.killed.Store(true) // Its parts die one after the other, and it may notice.
		p.port.kill(silent)
		p.session.crash()
		p.stop()
		close(p.gone)
	})
}

func (p *process) config() *config.Config {
	s, plan := p.server, p.server.world.plan
	c := config.Default()
	c.Tag = s.tag()
	c.GRPC, c.Raft, c.HTTP = s.address()+grpcPort, s.address()+raftPort, ""
	c.AdvertiseGRPC, c.AdvertiseRaft = s.grpcAddress(), s.advertised()+raftPort
	if plan.http {
		c.HTTP, c.AdvertiseHTTP = s.address()+httpPort, s.advertised()+httpPort
	}
	switch {
	case s.joins():
		if token := s.joinToken(); token != "" {
			c.JoinTokenFile, c.Stdin = "-", strings.NewReader(token)
		}
		for _, other := range s.world.machines() {
			if other != s {
				c.Join = append(c.Join, other.grpcAddress())
			}
		}
	case plan.nodes > 1:
		c.Peer = map[string]string{}
		for _, other := range s.world.founders() {
			c.Peer[other.host] = other.grpcAddress()
		}
	default:
		c.SingleNode = true
	}
	c.HeartbeatTimeout, c.ReserveFor, c.TrustData = plan.heartbeat, plan.reserve, s.trusts.Load()
	if s.empty.Load() {
		c.ClusterID = *s.world.clusterID.Load() // An operator has put it in after the first start.
	}
	c.Tuning = failpoint.Tuning{
		SnapshotInterval: plan.snapshotInterval, SnapshotThreshold: plan.snapshotThreshold, TrailingLogs: plan.trailingLogs,
		EtagBlock: plan.etagBlock, StartWait: plan.startWait, LeaderWait: plan.leaderWait,
	}
	return &c
}
