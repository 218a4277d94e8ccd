package fsm

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/nodeid"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// testCluster is the cluster of the tests.
var testCluster = bytes.Repeat([]byte{0xc1}, clusterIDBytes)

// testTime is when the tests begin.
var testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// nodeNamed returns a Raft id that is easy to recognise.
func nodeNamed(name string) []byte {
	id := make([]byte, nodeid.Size)
	copy(id, name)
	return id
}

// member returns a member with addresses that follow from its tag.
func testMember(tag string) *raftlogv1.Member {
	return &raftlogv1.Member{
		Id: nodeNamed("node " + tag), Tag: tag, LogFormat: 1,
		GrpcAddress: tag + ":7400", RaftAddress: tag + ":7401", HttpAddress: tag + ":7402",
	}
}

// testLog feeds a State with entries, as Raft would.
type testLog struct {
	t     testing.TB
	state *State
	index uint64
	now   time.Time
	// cluster is the cluster of the entries; nil is testCluster.
	cluster []byte
	// entries are the applied entries, to be applied again elsewhere.
	entries []testEntry
}

type testEntry struct {
	index uint64
	data  []byte
}

// newLog returns a log with an empty state.
func newLog(t testing.TB) *testLog {
	t.Helper()
	return &testLog{t: t, state: New(Config{}), now: testTime}
}

// newFormedLog returns a log whose first entry formed a cluster of A, B and C.
func newFormedLog(t testing.TB) *testLog {
	t.Helper()
	l := newLog(t)
	members := []*raftlogv1.Member{testMember("A"), testMember("B"), testMember("C")}
	l.mustApplied(l.raw(bootstrapOperation(testCluster, members)))
	return l
}

// apply applies an entry with the groups and returns their results.
func (l *testLog) apply(groups ...raftlog.Group) []raftlog.GroupResult {
	l.t.Helper()
	l.index++
	data := l.encode(groups...)
	l.entries = append(l.entries, testEntry{l.index, data})
	results, err := l.state.Apply(l.index, data)
	if err != nil {
		l.t.Fatalf("entry %d: %v", l.index, err)
	}
	if len(results) != len(groups) {
		l.t.Fatalf("entry %d: %d results of %d groups", l.index, len(results), len(groups))
	}
	return results
}

// encode encodes an entry with the groups.
func (l *testLog) encode(groups ...raftlog.Group) []byte {
	encoded := make([][]byte, len(groups))
	for i, g := range groups {
		encoded[i] = raftlog.AppendGroup(nil, g)
	}
	h := raftlog.Header{Format: 1, ClusterID: testCluster, TimeUnixNano: l.now.UnixNano()}
	if l.cluster != nil {
		h.ClusterID = l.cluster
	}
	return raftlog.AppendEntry(nil, h, encoded)
}

// recover has some members go on without the others.
func (l *testLog) recover(r Recovery) {
	l.t.Helper()
	done, err := l.state.Recover(r)
	if err != nil {
		l.t.Fatal(err)
	}
	l.cluster, l.index = done.ClusterID, l.state.AppliedIndex()
}

// raw applies one encoded operation in an entry of its own.
func (l *testLog) raw(operation []byte) *raftlogv1.Result {
	l.t.Helper()
	results := l.apply(raftlog.Group{Operations: [][]byte{operation}})
	return l.result(results[0], 0)
}

// do applies one operation in an entry of its own.
func (l *testLog) do(op *raftlogv1.Operation) *raftlogv1.Result {
	l.t.Helper()
	return l.raw(encodeOperation(op))
}

// result decodes one result of a group.
func (l *testLog) result(g raftlog.GroupResult, i int) *raftlogv1.Result {
	l.t.Helper()
	if g.Status != raftlog.Applied {
		l.t.Fatalf("the group was not applied: %v", g.Status)
	}
	r, err := decodeResult(g.Results[i])
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

// mustApplied fails the test if an operation was refused.
func (l *testLog) mustApplied(r *raftlogv1.Result) *raftlogv1.Result {
	l.t.Helper()
	if r.GetRefusal() != nil {
		l.t.Fatalf("refused: %v", r.GetRefusal())
	}
	return r
}

// announce opens a session for the node with the tag and returns its number.
func (l *testLog) announce(tag string) uint64 {
	l.t.Helper()
	return l.mustApplied(l.raw(announceOperation(testMember(tag)))).GetMember().GetSession()
}

// snapshot returns the state's snapshot.
func snapshotOf(t testing.TB, s *State) []byte {
	t.Helper()
	snapshot := s.Snapshot()
	defer snapshot.Close()
	var b bytes.Buffer
	n, err := snapshot.WriteTo(&b)
	if err != nil {
		t.Fatal(err)
	}
	if n != int64(b.Len()) {
		t.Fatalf("WriteTo says %d bytes and wrote %d", n, b.Len())
	}
	return b.Bytes()
}

// restored returns a new state from a snapshot.
func restored(t testing.TB, snapshot []byte) *State {
	t.Helper()
	s := New(Config{})
	if err := s.Restore(bytes.NewReader(snapshot)); err != nil {
		t.Fatal(err)
	}
	return s
}

// diff fails the test if want and got differ.
func diff(t testing.TB, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
		t.Fatalf("-want +got:\n%s", d)
	}
}

// key returns a request key named by a number.
func key(n int, fingerprint uint64) *raftlogv1.RequestKey {
	k := make([]byte, 16)
	k[0], k[1], k[2] = byte(n), byte(n>>8), byte(n>>16)
	return &raftlogv1.RequestKey{Key: k, Fingerprint: fingerprint}
}

// encodeOperation encodes an operation as the generated code does.
func encodeOperation(o *raftlogv1.Operation) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(o)
	if err != nil {
		panic(err)
	}
	return b
}

// decodeResult decodes a result, or a refusal.
func decodeResult(b []byte) (*raftlogv1.Result, error) {
	r := new(raftlogv1.Result)
	return r, proto.Unmarshal(b, r)
}

// encodePayload encodes the operation on the cluster that does what a message says.
func encodePayload(payload proto.Message) []byte { return encodeIn(op.Envelope{}, payload) }

func encodeIn(e op.Envelope, payload proto.Message) []byte {
	b, err := e.Encode(payload)
	if err != nil {
		panic(err)
	}
	return b
}

func bootstrapOperation(clusterID []byte, members []*raftlogv1.Member) []byte {
	return encodePayload(&raftlogv1.Bootstrap{ClusterId: clusterID, Members: members})
}

func addOperation(add *raftlogv1.MemberAdd) []byte { return encodePayload(add) }

func announceOperation(m *raftlogv1.Member) []byte {
	return encodePayload(&raftlogv1.MemberAnnounce{Member: m})
}

func promoteOperation(id []byte) []byte { return encodePayload(&raftlogv1.MemberPromote{Id: id}) }

func removeOperation(tag string, judged uint64) []byte {
	return encodePayload(&raftlogv1.MemberRemove{Tag: tag, MembershipIndex: judged})
}

func formatRaiseOperation(format uint32) []byte {
	return encodePayload(&raftlogv1.FormatRaise{Format: format})
}

func keyedAnnouncement(m *raftlogv1.Member, key [16]byte) []byte {
	return encodeIn(op.Envelope{Request: &op.RequestKey{Key: key}}, &raftlogv1.MemberAnnounce{Member: m})
}

// Operations, in the fewest words.

func opNext(name string, count int64) *raftlogv1.Operation {
	next := &raftlogv1.IdentityNext{Name: name, Count: count, Separator: "/"}
	return &raftlogv1.Operation{Database: "db", Op: &raftlogv1.Operation_IdentityNext{IdentityNext: next}}
}

func opSeed(name string, value int64, force bool, expected *int64) *raftlogv1.Operation {
	seed := &raftlogv1.IdentitySeed{Name: name, Value: value, Force: force, Expected: expected}
	return &raftlogv1.Operation{Database: "db", Op: &raftlogv1.Operation_IdentitySeed{IdentitySeed: seed}}
}

func opDelete(name string, forget bool) *raftlogv1.Operation {
	del := &raftlogv1.IdentityDelete{Name: name, Forget: forget}
	return &raftlogv1.Operation{Database: "db", Op: &raftlogv1.Operation_IdentityDelete{IdentityDelete: del}}
}

func opHiLo(next *raftlogv1.HiLoNext) *raftlogv1.Operation {
	return &raftlogv1.Operation{Database: "db", Op: &raftlogv1.Operation_HiloNext{HiloNext: next}}
}

func opReturn(ret *raftlogv1.HiLoReturn) *raftlogv1.Operation {
	return &raftlogv1.Operation{Database: "db", Op: &raftlogv1.Operation_HiloReturn{HiloReturn: ret}}
}

func opHiLoSetTo(tag string, value, expected int64) *raftlogv1.Operation {
	set := &raftlogv1.HiLoSet{Tag: tag, Max: value, Expected: expected}
	return &raftlogv1.Operation{Database: "db", Op: &raftlogv1.Operation_HiloSet{HiloSet: set}}
}

func opClaimID(id string) *raftlogv1.Operation {
	return &raftlogv1.Operation{Database: "db", Op: &raftlogv1.Operation_Claim{Claim: &raftlogv1.Claim{Id: id}}}
}

func opReleaseID(id string) *raftlogv1.Operation {
	return &raftlogv1.Operation{Database: "db", Op: &raftlogv1.Operation_Release{Release: &raftlogv1.Release{Id: id}}}
}

func opSet(key string, value int64) *raftlogv1.Operation {
	set := &raftlogv1.SettingSet{Key: key, Value: value}
	return &raftlogv1.Operation{Op: &raftlogv1.Operation_SettingSet{SettingSet: set}}
}

func opRaiseEtags(node string, to map[string]uint64) *raftlogv1.Operation {
	raise := &raftlogv1.EtagRaise{Node: nodeNamed("node " + node)}
	for _, db := range sortedKeys(to) {
		raise.Raise = append(raise.Raise, &raftlogv1.EtagCeiling{Database: db, Ceiling: to[db]})
	}
	return &raftlogv1.Operation{Op: &raftlogv1.Operation_EtagRaise{EtagRaise: raise}}
}

func opCleanStop(node string, start uint64, last map[string]uint64) *raftlogv1.Operation {
	stop := &raftlogv1.EtagCleanStop{Node: nodeNamed("node " + node), Start: start}
	for _, db := range sortedKeys(last) {
		stop.Last = append(stop.Last, &raftlogv1.EtagCeiling{Database: db, Last: last[db]})
	}
	return &raftlogv1.Operation{Op: &raftlogv1.Operation_EtagCleanStop{EtagCleanStop: stop}}
}

func sortedKeys(m map[string]uint64) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// keyed returns a copy of an operation with a request key, by a caller without a name
// if it names none.
func keyed(op *raftlogv1.Operation, k *raftlogv1.RequestKey) *raftlogv1.Operation {
	op = proto.CloneOf(op)
	op.Request, op.Principal = k, proto.String(op.GetPrincipal())
	return op
}
