package fsm

import (
	"math"
	"strings"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

var randomDatabases = []string{"x", "y", "z"}

// draw draws operations from a world so small that they meet.
func (r *randomRun) draw(t *rapid.T) []*raftlogv1.Operation {
	ops := make([]*raftlogv1.Operation, rapid.IntRange(0, 4).Draw(t, "operations"))
	for i := range ops {
		ops[i] = r.drawOperation(t)
		if rapid.IntRange(0, 3).Draw(t, "keyed") == 0 {
			ops[i].Principal = proto.String(rapid.SampledFrom([]string{"", "", "", "CN=größe", "CN=till"}).Draw(t, "caller"))
			ops[i] = keyed(ops[i], r.drawKey(t))
		}
	}
	return ops
}

func (r *randomRun) drawKey(t *rapid.T) *raftlogv1.RequestKey {
	k := key(rapid.IntRange(1, 12).Draw(t, "key"), uint64(rapid.IntRange(1, 6).Draw(t, "fingerprint")/6))
	k.Retry = rapid.IntRange(0, 3).Draw(t, "retry") == 0
	if k.Retry || rapid.Bool().Draw(t, "says since") {
		k.Since = r.index + 3 - min(r.index, rapid.Uint64Range(0, 30).Draw(t, "entries before"))
	}
	return k
}

func (r *randomRun) drawOperation(t *rapid.T) *raftlogv1.Operation {
	kinds := []func(*rapid.T) *raftlogv1.Operation{
		drawNext, drawNext, drawNext, drawSeed, drawDelete, r.drawHiLo, r.drawHiLo, r.drawReturn, r.drawReturn,
		r.drawHiLoSet, drawClaim, drawClaim, drawRelease, drawSetting, drawMembership, drawMembership, r.drawEtags, drawDatabaseDelete,
	}
	op := rapid.SampledFrom(kinds).Draw(t, "kind")(t)
	if op.Database == "db" {
		op.Database = rapid.SampledFrom(randomDatabases).Draw(t, "db")
	}
	return op
}

func drawName(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "long name", "ünï", "a\u202e"}).Draw(t, "name")
}

func drawNext(t *rapid.T) *raftlogv1.Operation {
	op := opNext(drawName(t), rapid.Int64Range(0, 5).Draw(t, "count"))
	op.GetIdentityNext().Separator = rapid.SampledFrom([]string{"/", "/", "#"}).Draw(t, "separator")
	return op
}

func drawSeed(t *rapid.T) *raftlogv1.Operation {
	value := rapid.SampledFrom([]int64{-3, 0, 1, 5, 20, math.MaxInt64 - 2, math.MaxInt64}).Draw(t, "value")
	// Far values only once in a while, or there is nothing else any more.
	if value > 20 && rapid.IntRange(0, 3).Draw(t, "far") > 0 {
		value = 7
	}
	op := opSeed(drawName(t), value, rapid.Bool().Draw(t, "force"), nil)
	if rapid.IntRange(0, 3).Draw(t, "expected") == 0 {
		op.GetIdentitySeed().Expected = proto.Int64(rapid.Int64Range(0, 5).Draw(t, "value expected"))
	}
	return op
}

func drawDelete(t *rapid.T) *raftlogv1.Operation {
	return opDelete(drawName(t), rapid.IntRange(0, 3).Draw(t, "forget") == 0)
}

func drawDatabaseDelete(*rapid.T) *raftlogv1.Operation {
	return &raftlogv1.Operation{Database: "db", Op: &raftlogv1.Operation_DatabaseDelete{DatabaseDelete: &raftlogv1.DatabaseDelete{}}}
}

func (r *randomRun) drawHiLo(t *rapid.T) *raftlogv1.Operation {
	op := opHiLo(&raftlogv1.HiLoNext{
		Tag:               drawName(t),
		Size:              rapid.SampledFrom([]int64{0, 0, 1, 3, 1 << 20, 1<<20 + 1, -1}).Draw(t, "size"),
		LastSize:          rapid.SampledFrom([]int64{0, 32, 64, 1 << 20, -5}).Draw(t, "last size"),
		HasLastRange:      rapid.Bool().Draw(t, "has last"),
		LastRangeUnixNano: r.now - rapid.Int64Range(-5, 90).Draw(t, "idle")*1e9,
		LastMax:           rapid.SampledFrom([]int64{0, 0, 0, 40, -7, 1 << 40}).Draw(t, "last max"),
		Token:             rapid.Uint64Range(0, 3).Draw(t, "token"),
		ServerTag:         "A", ServerPrefix: rapid.SampledFrom([]string{"", "North"}).Draw(t, "prefix"),
		Label:   rapid.SampledFrom([]string{"", "", "", "till 3", "a\nb", strings.Repeat("ü", 32), strings.Repeat("x", 65)}).Draw(t, "label"),
		Reserve: rapid.IntRange(0, 9).Draw(t, "reserve") == 0,
	})
	op.Principal = drawHolder(t)
	return op
}

func drawHolder(t *rapid.T) *string {
	if !rapid.Bool().Draw(t, "named") {
		return nil
	}
	return proto.String(rapid.SampledFrom([]string{"", "CN=größe"}).Draw(t, "principal"))
}

// drawReturn mostly returns a range that is or was outstanding.
func (r *randomRun) drawReturn(t *rapid.T) *raftlogv1.Operation {
	ret := &raftlogv1.HiLoReturn{Tag: drawName(t), Low: 1, High: 32, Last: 5, CheckToken: rapid.Bool().Draw(t, "check token")}
	op := opReturn(ret)
	op.Database = rapid.SampledFrom(randomDatabases).Draw(t, "db of range")
	if h := r.model.hilos[place(op.GetDatabase(), ret.GetTag())]; h != nil && len(h.outstanding) > 0 {
		o := h.outstanding[rapid.IntRange(0, len(h.outstanding)-1).Draw(t, "which")]
		ret.Low, ret.High, ret.Token = o.low, o.high, o.token
		ret.Last = rapid.SampledFrom([]int64{o.low - 2, o.low - 1, o.low - 1, o.low, o.high, o.high + 1}).Draw(t, "last")
	}
	if rapid.IntRange(0, 4).Draw(t, "without low") == 0 {
		ret.Low = 0
	}
	op.Principal = drawHolder(t)
	return op
}

func (r *randomRun) drawHiLoSet(t *rapid.T) *raftlogv1.Operation {
	op := opHiLoSetTo(drawName(t), 0, rapid.Int64Range(0, 40).Draw(t, "expected"))
	op.Database = rapid.SampledFrom(randomDatabases).Draw(t, "db of counter")
	set := op.GetHiloSet()
	if h := r.model.hilos[place(op.GetDatabase(), set.GetTag())]; h != nil && rapid.Bool().Draw(t, "as expected") {
		set.Expected = h.max
	}
	set.Max = set.GetExpected() + rapid.Int64Range(-1, 40).Draw(t, "ahead")
	set.Max = max(set.Max, 0)
	return op
}

var randomClaims = []string{
	"a/1", "a/2", "a/3", "a/6", "a/7", "a#3", "b/4", "b/9223372036854775807", "ünï/5", "a/01",
	"free", "a\n/2", "a\u202e/3",
}

func drawClaim(t *rapid.T) *raftlogv1.Operation {
	return opClaimID(rapid.SampledFrom(randomClaims).Draw(t, "id"))
}

func drawRelease(t *rapid.T) *raftlogv1.Operation {
	return opReleaseID(rapid.SampledFrom(randomClaims).Draw(t, "id"))
}

// drawSetting lowers a limit until it bites, or raises it again.
func drawSetting(t *rapid.T) *raftlogv1.Operation {
	name := rapid.SampledFrom([]string{
		"request-window", "max-identities", "max-hilos", "max-claims", "max-databases",
		"max-name-bytes-total", "max-names-per-database", "max-name-bytes-per-database",
	}).Draw(t, "setting")
	values := map[string][]int64{
		"request-window": {1, 2, 5, 1_000_000}, "max-name-bytes-total": {8, 1 << 30},
		"max-names-per-database": {2, 300_000_000}, "max-name-bytes-per-database": {6, 1 << 40}, "max-databases": {1, 2, 10_000},
	}[name]
	if values == nil {
		values = []int64{1, 3, 5_000_000}
	}
	return opSet(name, rapid.SampledFrom(values).Draw(t, "value"))
}

func drawMembership(t *rapid.T) *raftlogv1.Operation {
	tag := rapid.SampledFrom([]string{"A", "B", "C", "D", "E"}).Draw(t, "tag")
	m := testMember(tag)
	switch rapid.IntRange(0, 9).Draw(t, "membership") {
	case 0, 1:
		m.Watcher = rapid.Bool().Draw(t, "watcher")
		m.Tag = rapid.SampledFrom([]string{tag, tag, "A", ""}).Draw(t, "wanted")
		if rapid.IntRange(0, 3).Draw(t, "fresh") == 0 {
			m.Id = nodeNamed("fresh " + tag)
		}
		return &raftlogv1.Operation{Op: &raftlogv1.Operation_MemberAdd{MemberAdd: &raftlogv1.MemberAdd{Member: m}}}
	case 2:
		return &raftlogv1.Operation{Op: &raftlogv1.Operation_MemberPromote{MemberPromote: &raftlogv1.MemberPromote{Id: m.GetId()}}}
	case 3:
		return &raftlogv1.Operation{Op: &raftlogv1.Operation_MemberRemove{MemberRemove: &raftlogv1.MemberRemove{Tag: tag}}}
	case 4:
		set := &raftlogv1.WatcherSet{Tag: tag, Watcher: rapid.Bool().Draw(t, "watcher")}
		return &raftlogv1.Operation{Op: &raftlogv1.Operation_WatcherSet{WatcherSet: set}}
	case 5:
		return opBootstrapABC()
	default:
		m.Tag = rapid.SampledFrom([]string{tag, tag, tag, tag, "B"}).Draw(t, "announced")
		m.GrpcAddress = rapid.SampledFrom([]string{"here:1", "there:2"}).Draw(t, "address")
		return &raftlogv1.Operation{Op: &raftlogv1.Operation_MemberAnnounce{MemberAnnounce: &raftlogv1.MemberAnnounce{Member: m}}}
	}
}

func (r *randomRun) drawEtags(t *rapid.T) *raftlogv1.Operation {
	tag := rapid.SampledFrom([]string{"A", "B", "E"}).Draw(t, "tag")
	to := rapid.MapOfN(rapid.SampledFrom(randomDatabases), rapid.Uint64Range(0, 50), 0, 3).Draw(t, "etags")
	if rapid.Bool().Draw(t, "raise") {
		return opRaiseEtags(tag, to)
	}
	start := rapid.Uint64Range(0, 3).Draw(t, "start")
	if e := r.model.etags[string(nodeNamed("node "+tag))]; e != nil && rapid.Bool().Draw(t, "present start") {
		start = e.start
	}
	return opCleanStop(tag, start, to)
}
