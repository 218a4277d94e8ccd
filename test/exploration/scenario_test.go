package exploration

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

// scenario is a world's calls, and what may go wrong in it.
type scenario struct {
	name  string
	calls []call
	// window is how many request ids are remembered.
	window int64
	budget budget
	// long says that the quick tier leaves it out.
	long bool
	// lagging says that followers apply an entry at any time. Otherwise only leaders do,
	// and a follower when it is elected.
	lagging bool
}

// budget is how often each kind of fault may happen.
type budget struct {
	changes   uint8 // elections while there is a leader
	crashes   uint8
	snapshots uint8
	losses    uint8 // of messages, and of answers
	repeats   uint8 // of messages
	expiries  uint8 // of callers, and of groups that are given up
	// recoveries are of one member, of which the others begin anew. There is one at most.
	recoveries uint8
}

// maxCalls is the most calls of a scenario.
const maxCalls = 5

// kind is what a call does.
type kind uint8

const (
	identityNext kind = iota
	hiloNext
	hiloReturn
	highReturn // as RavenDB's clients do it: the range's High alone names it
	strangerReturn
	claim
	release
	merge
	takeNumber // of the call's document
	giveBack   // of the document's number, which another may get then
	lease      // of the one worker of a pool that is left
	renew
	free // of what is left of a window
	takeAllotted
	withdraw
	mergeBackup
	resume
)

// call is one call of a scenario.
type call struct {
	name string
	kind kind
	// node takes the call.
	node uint8
	// who is the same of calls that are to count once together.
	who uint8
	// request is the call's request id, if it has one, and retry says that it is not the
	// first try.
	request uint8
	retry   bool
	// document is whose number a call takes or gives back.
	document string
	// number is one that the document has already, which the call enters.
	number int64
	// backup is what a call merges.
	backup uint8
	// at is when a call is made, after 1970: the clocks of a holder of a lease, and of the leader.
	at time.Duration
	// follows is 1 + the call before it, if there is one: a retry follows its first try,
	// others the answer that they are about.
	follows uint8
}

// What the calls are about.
const (
	database = "db"
	name     = "users"
	claimed  = "users/1"
	tag      = "users"
	size     = 32
	// books is a series that gives released numbers again.
	books = "books"
	// leftOpen is the last of its numbers that a restore left open.
	leftOpen = 1
	// bills is a series of ranges: the first one ends with 1970-01-01, and the second one, without end, is taken back.
	bills      = "bills"
	day        = 24 * time.Hour
	from1, to1 = 11, 12
	from2, to2 = 21, 22
	// pool is that of the worker, lasts the length of its windows, and used how many of their times
	// have ids when the rest is given back.
	pool, lasts, used = "pool", 10 * time.Second, 6000
	// merged is what a merge raises counters to: within the first range.
	merged = 20
)

// backups are those of the bills: the newer one has both ranges, and the first one ended before it was used up.
var backups = [][]int64{{}, {from1}, {from1, from2}}

// operation is the call's operation as its node proposes it.
func (c call) operation(m *machine, s said) []byte {
	e := op.Envelope{Database: database}
	if c.request > 0 {
		var principal string
		e.Principal = &principal
		e.Request = &op.RequestKey{Key: [16]byte{c.request}, Fingerprint: 1, Retry: c.retry, Since: m.sinceIndex(s.since)}
	}
	return encode(e, c.payload(m.gains[s.about], s.call))
}

func (c call) payload(about gain, token uint8) proto.Message {
	switch c.kind {
	case identityNext:
		return &raftlogv1.IdentityNext{Name: name, Count: 1, Separator: "/"}
	case hiloNext:
		return &raftlogv1.HiLoNext{Tag: tag, Size: size, Token: uint64(token)}
	case hiloReturn:
		return &raftlogv1.HiLoReturn{Tag: tag, Low: about.low, High: about.high, Last: about.low - 1, Token: uint64(c.follows), CheckToken: true}
	case highReturn:
		return &raftlogv1.HiLoReturn{Tag: tag, High: about.high, Last: about.low - 1}
	case strangerReturn:
		return &raftlogv1.HiLoReturn{Tag: tag, Low: about.low, High: about.high, Last: about.low - 1, Token: 99, CheckToken: true}
	case claim:
		return &raftlogv1.Claim{Id: claimed}
	case release:
		return &raftlogv1.Release{Id: claimed}
	case takeNumber:
		take := &raftlogv1.SeriesTake{Name: books, Keys: []string{c.document}, Version: 1, Number: c.number}
		if c.number > 0 {
			take.Because = "by hand"
		}
		return take
	case giveBack:
		return &raftlogv1.SeriesEnd{Name: books, State: uint32(series.Released), Keys: []*raftlogv1.SeriesKey{{Key: c.document}}}
	case takeAllotted:
		return &raftlogv1.SeriesTake{Name: bills, Keys: []string{c.document}, Version: 1}
	case withdraw:
		return &raftlogv1.SeriesAllot{Name: bills, Allotment: rangeOf(from2, to2), Withdraw: true}
	case mergeBackup:
		return &raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Numbers{Numbers: backupOf(c.backup)}}
	case resume:
		return &raftlogv1.SeriesResume{Name: bills}
	case lease:
		return &raftlogv1.WorkerAcquire{
			Pool: pool, Holder: c.name, Token: uint64(token), WantNanos: int64(lasts), HolderUnixNano: int64(c.at),
		}
	case renew:
		return &raftlogv1.WorkerRenew{
			Pool: pool, Worker: 1, Token: uint64(c.follows), WantNanos: int64(lasts), HolderUnixNano: int64(c.at),
		}
	case free:
		return &raftlogv1.WorkerRelease{Pool: pool, Worker: 1, Token: uint64(c.follows), Next: about.low + used}
	default:
		return &raftlogv1.Merge{
			Identities: []*raftlogv1.MergeIdentity{{Name: name, Last: merged}},
			Hilos:      []*raftlogv1.MergeHiLo{{Tag: tag, Max: merged, Peak: merged}},
		}
	}
}
