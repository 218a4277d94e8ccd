package superrange

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/test/fsmtest"
)

const (
	database = "shop"
	tag      = "users"
	// superSize is the size of a super-range, and mostTaken that of what a caller takes.
	superSize, mostTaken = 40, 8
)

// faults are planted in the protocol.
type faults struct {
	// useUnlogged serves from a grant that is not in the child's log yet.
	useUnlogged bool
	// newIDs makes each retry under a request id of its own.
	newIDs bool
	// restoreGrants has a restored child go on in the super-range of its backup.
	restoreGrants bool
	// keepName has a restored child ask under its old name, so that its request ids repeat.
	keepName bool
	// homeForgets has a restored home grant at once, without its children's reports.
	homeForgets bool
	// takeOldAnswers has a child take a grant of the home before its restore.
	takeOldAnswers bool
}

// state is a cluster whose log is that of its replicated state.
type state struct{ *fsmtest.Cluster }

func newState(t testing.TB) state {
	return state{fsmtest.New(t, time.Unix(1_800_000_000, 0), fsmtest.Member("A"))}
}

// max is the last number of the tag that is taken.
func (s state) max() int64 {
	c, _ := s.State.HiLo(database, tag)
	return c.Max
}

// record is a number that the log keeps under a name.
func (s state) record(name string) int64 {
	c, _ := s.State.Identity(database, name)
	return c.Last
}

// raise raises the counter of the tag, and records, in one entry.
func (s state) raise(max int64, records map[string]int64) {
	m := &raftlogv1.Merge{}
	if max > 0 {
		m.Hilos = []*raftlogv1.MergeHiLo{{Tag: tag, Max: max}}
	}
	for _, name := range []string{"granted", "home"} {
		if last := records[name]; last > 0 {
			m.Identities = append(m.Identities, &raftlogv1.MergeIdentity{Name: name, Last: last})
		}
	}
	if len(m.Hilos)+len(m.Identities) > 0 {
		s.Must(op.Envelope{Database: database}, m)
	}
}

// take takes a range of the tag, once for each id that is not empty.
func (s state) take(size, lastMax int64, id string) span {
	caller := "caller"
	e := op.Envelope{Database: database, Principal: &caller}
	if id != "" {
		hash := sha256.Sum256([]byte(id))
		e.Request = &op.RequestKey{Key: [16]byte(hash[:16]), Retry: true}
	}
	r := s.Must(e, &raftlogv1.HiLoNext{Tag: tag, Size: size, LastMax: lastMax, ServerTag: "A"})
	got := r.GetHiloNext()
	if got.GetHigh()-got.GetLow()+1 != size {
		panic(fmt.Sprintf("asked for %d numbers, got %v", size, r))
	}
	return span{got.GetLow(), got.GetHigh()}
}

// span is a range of numbers.
type span struct{ low, high int64 }

// message is on a link, to the home or to a child.
type message struct {
	kind  string
	child *child
	// name is that of the child's cluster, and epoch how often the home was restored.
	name  string
	epoch int64
	// id and reached are those of a request, granted is its answer.
	id      string
	reached int64
	granted span
	// unsure is that of a report: the child does not know how far its grants reached.
	unsure bool
}

// world is all that there is.
type world struct {
	t        testing.TB
	random   *rand.Rand
	faults   faults
	home     home
	children []*child
	// sent are the messages on all links.
	sent []message
	// given has who gave each number; twice describes the first that came twice.
	given map[int64]string
	twice string
	// grants are the super-ranges that the home gave, installed those that a child used.
	grants, installed map[span]bool
	// restores says whether clusters are restored from backups.
	restores bool
}

func newWorld(t testing.TB, seed uint64, f faults) *world {
	w := &world{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), faults: f, given: map[int64]string{},
		grants: map[span]bool{}, installed: map[span]bool{},
	}
	w.home = home{state: newState(t), epoch: 1}
	for i := range 2 {
		c := &child{state: newState(t), region: i}
		c.rename()
		w.children = append(w.children, c)
	}
	return w
}

// give notes the numbers that a caller got.
func (w *world) give(who string, s span) {
	for n := s.low; n <= s.high; n++ {
		if before := w.given[n]; before != "" && w.twice == "" {
			w.twice = fmt.Sprintf("number %d from %s and from %s", n, before, who)
		}
		w.given[n] = who
	}
}

// newest is the newest number that anybody may have.
func (w *world) newest() (n int64) {
	for s := range w.grants {
		n = max(n, s.high)
	}
	for number := range w.given {
		n = max(n, number)
	}
	return n
}

// step does one thing that may happen.
func (w *world) step() {
	c := w.children[w.random.IntN(len(w.children))]
	switch n := w.random.IntN(1000); {
	case n < 400:
		w.serve(c)
	case n < 550:
		w.ask(c)
	case n < 800:
		w.deliver()
	case n < 870:
		c.cut = !c.cut
	case n < 900:
		c.pending = nil // A crash: what is not in the log is gone.
	case n < 940:
		w.homeServes()
	case n < 950:
		c.backup, c.backupGranted = c.max(), c.record("granted")
	case n < 960:
		w.home.backup = w.home.max()
	case n < 970 && w.restores:
		w.restoreChild(c)
	case n < 975 && w.restores:
		w.restoreHome()
	default:
		w.callForReports()
	}
}

// deliver takes a message off its link: it arrives, is lost, or arrives and comes again.
func (w *world) deliver() {
	if len(w.sent) == 0 {
		return
	}
	i := w.random.IntN(len(w.sent))
	m := w.sent[i]
	if m.child.cut {
		return
	}
	switch w.random.IntN(8) {
	case 0: // It comes again.
	case 1:
		w.drop(i)
		return
	default:
		w.drop(i)
	}
	w.arrive(m)
}

func (w *world) drop(i int) {
	w.sent[i] = w.sent[len(w.sent)-1]
	w.sent = w.sent[:len(w.sent)-1]
}

func (w *world) arrive(m message) {
	switch m.kind {
	case "request":
		w.grant(m)
	case "grant":
		w.granted(m.child, m)
	case "call":
		w.report(m.child, m)
	case "report":
		w.reported(m)
	}
}
