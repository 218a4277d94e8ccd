package op

import (
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/identity"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// golden returns the encodings in a file of testdata by their names. Each line has a name and the
// bytes, as released nodes write them, so a line is added for a new operation, and no line is ever
// changed.
func golden(t *testing.T, file string) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	encodings := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		name, digits, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		data, err := hex.DecodeString(digits)
		if err != nil || encodings[name] != nil {
			t.Fatalf("%s: %v", line, err)
		}
		encodings[name] = data
	}
	return encodings
}

// sameAsGolden compares encodings with those in a file.
func sameAsGolden(t *testing.T, file string, got map[string][]byte) {
	t.Helper()
	want := golden(t, file)
	for name, data := range got {
		if string(data) != string(want[name]) {
			t.Errorf("%s: got\n%x instead of\n%x", name, data, want[name])
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s is not tested", name)
	}
}

func TestOperationsKeepTheirBytes(t *testing.T) {
	got := map[string][]byte{}
	for name, c := range operations() {
		got[name] = c.encode(t)
	}
	sameAsGolden(t, "operations", got)
}

func TestResultsKeepTheirBytes(t *testing.T) {
	got := map[string][]byte{}
	for name, c := range results() {
		got[name] = c.encoded
	}
	sameAsGolden(t, "results", got)
}

// operation is an operation to encode.
type operation struct {
	Envelope
	payload proto.Message
}

func (o operation) encode(t testing.TB) []byte {
	t.Helper()
	if next, ok := o.payload.(*raftlogv1.IdentityNext); ok {
		return o.EncodeIdentityNext(next.GetName(), next.GetCount(), next.GetSeparator())
	}
	data, err := o.Encode(o.payload)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// operations has operations of each kind, and with all that an envelope may say.
func operations() map[string]operation {
	id, table := []byte("0123456789abcdef"), []byte{10, 5, 10, 3, 'a', 'l', 'l'}
	member := &raftlogv1.Member{
		Id: id, Tag: "A", GrpcAddress: "a:1", RaftAddress: "a:2", HttpAddress: "a:3", Watcher: true, Voter: true,
		Removed: true, LogFormat: 3, Starts: 9, Process: 1 << 63, TrustData: true,
	}
	etags := []*raftlogv1.EtagCeiling{{Database: "shop", Ceiling: math.MaxUint64}, {Database: "größe", Ceiling: 0}}
	definition := &raftlogv1.SeriesDefinition{
		Format: "INV-{number:6}", ResetBy: 1, Order: 1, OnRelease: 1, OnExpiry: 2,
		ExpiresInNanos: 1 << 40, MaxOpen: 3, MaxKeys: 1 << 33, TimeZone: "Europe/Berlin", MaxAheadDays: proto.Int32(7),
	}
	stored := &raftlogv1.SeriesStored{
		Key: "a", Label: "till", State: 5, Shared: true, Date: -1, TakenUnixNano: 1 << 60,
		ExpiresUnixNano: 1<<60 + 1, Reason: "torn",
	}
	origin := &raftlogv1.SeriesOrigin{SinceUnixNano: 1 << 59, Version: 2, VoidedByUnixNano: -1, ReleasedVoided: true, KeysStay: true}
	payloads := map[string]proto.Message{
		"identity next":         &raftlogv1.IdentityNext{Name: "users", Count: 1, Separator: "/"},
		"identity next, many":   &raftlogv1.IdentityNext{Name: strings.Repeat("größe", 60), Count: 1_000_000, Separator: "→"},
		"identity seed":         &raftlogv1.IdentitySeed{Name: "users", Value: -7, Force: true, Expected: proto.Int64(0)},
		"identity seed, plain":  &raftlogv1.IdentitySeed{Name: "users", Value: 7},
		"identity delete":       &raftlogv1.IdentityDelete{Name: "users", Forget: true},
		"identity delete, hide": &raftlogv1.IdentityDelete{Name: "users"},
		"database delete":       &raftlogv1.DatabaseDelete{},
		"hilo next": &raftlogv1.HiLoNext{
			Tag: "orders", Size: 32, LastSize: 64, HasLastRange: true, LastRangeUnixNano: 1 << 60,
			LastMax: 96, Token: 7, ServerTag: "A", ServerPrefix: "eu", MaxHigh: 1 << 53,
		},
		"hilo next, first":        &raftlogv1.HiLoNext{Tag: "orders", Token: math.MaxUint64, ServerTag: "A"},
		"hilo next, with label":   &raftlogv1.HiLoNext{Tag: "orders", Token: 7, ServerTag: "A", Label: "till größe", Reserve: true},
		"hilo return":             &raftlogv1.HiLoReturn{Tag: "orders", Low: 33, High: 64, Last: 40, Token: 7, CheckToken: true},
		"hilo set":                &raftlogv1.HiLoSet{Tag: "orders", Max: 50, Expected: 32},
		"claim":                   &raftlogv1.Claim{Id: "users/ayende"},
		"release":                 &raftlogv1.Release{Id: "users/ayende"},
		"setting set":             &raftlogv1.SettingSet{Key: "max-claims", Value: 4},
		"bootstrap":               &raftlogv1.Bootstrap{ClusterId: id, Members: []*raftlogv1.Member{member, {Id: id, Tag: "B"}}},
		"member add":              &raftlogv1.MemberAdd{Member: member, TokenHash: id},
		"member announce":         &raftlogv1.MemberAnnounce{Member: member},
		"member announce, nobody": &raftlogv1.MemberAnnounce{},
		"member promote":          &raftlogv1.MemberPromote{Id: id},
		"member remove":           &raftlogv1.MemberRemove{Tag: "B", MembershipIndex: 300},
		"watcher set":             &raftlogv1.WatcherSet{Tag: "B", Watcher: true, MembershipIndex: 300},
		"format raise":            &raftlogv1.FormatRaise{Format: 3},
		"etag raise":              &raftlogv1.EtagRaise{Node: id, Raise: etags},
		"etag clean stop": &raftlogv1.EtagCleanStop{
			Node: id, Start: 4,
			Last: []*raftlogv1.EtagCeiling{{Database: "shop", Last: 12}}, Partial: true,
		},
		"merge": &raftlogv1.Merge{
			Identities: []*raftlogv1.MergeIdentity{{Name: "users", Last: 9, Hidden: true}},
			Hilos:      []*raftlogv1.MergeHiLo{{Tag: "orders", Max: 64, Peak: 96}}, Claims: []string{"users/a", "users/b"},
		},
		"merge cluster": &raftlogv1.MergeCluster{
			Floor: 1000, Tags: []*raftlogv1.GivenTag{{Id: id, Tag: "C", Etags: etags}},
			ShareTags: true, EtagFloor: 5, Resume: "0/0/a", Incomplete: true,
		},
		"roles set":       &raftlogv1.RolesSet{Table: table, Expected: proto.Uint64(0)},
		"roles set, none": &raftlogv1.RolesSet{},
		"series define":   &raftlogv1.SeriesDefine{Name: "invoices", Definition: definition, ExpectedVersion: 2},
		"series define, begins": &raftlogv1.SeriesDefine{
			Name: "invoices", Definition: definition,
			Begins: []*raftlogv1.SeriesBegin{{Scope: []string{"2026", "BERLIN"}, First: 543}, {First: 2}},
		},
		"series define, limits": &raftlogv1.SeriesDefine{Name: "invoices", Definition: &raftlogv1.SeriesDefinition{
			Format: "{branch}-{number}", MaxAheadDays: proto.Int32(0), MaxLength: 16,
			Allowed: []*raftlogv1.SeriesAllowed{{Name: "branch", Values: []string{"B", "C"}}},
		}},
		"series delete": &raftlogv1.SeriesDelete{Name: "invoices", ExpectedVersion: 2},
		"series take": &raftlogv1.SeriesTake{
			Name: "invoices", Values: []string{"BERLIN"}, Date: proto.Int32(-1),
			UtcOffsetSeconds: -3600, Keys: []string{"a", "größe"}, Label: "till", ExpiresInNanos: 1 << 40, Version: 2, SinceUnixNano: 1 << 60,
		},
		"series take, least": &raftlogv1.SeriesTake{Name: "invoices", Keys: []string{"a"}},
		"series end": &raftlogv1.SeriesEnd{
			Name: "invoices", State: 3,
			Keys: []*raftlogv1.SeriesKey{{Key: "a", Number: 7}, {Key: "b"}}, Reason: "torn",
		},
		"series allot": &raftlogv1.SeriesAllot{
			Name: "invoices", Scope: []string{"2026", "BERLIN"}, Withdraw: true,
			Allotment: &raftlogv1.SeriesAllotment{From: 1, To: 500, Until: proto.Int32(20_000), Note: "CAF 77"},
		},
		"series close scope": &raftlogv1.SeriesCloseScope{Name: "invoices", Scope: []string{"2026", "BERLIN"}},
		"series resume": &raftlogv1.SeriesResume{
			Name: "invoices",
			Books: []*raftlogv1.SeriesInBooks{
				{Scope: []string{"2026", "BERLIN"}, Last: 7},
				{Scope: []string{"2025", "BERLIN"}, Last: 9, LastDate: proto.Int32(-1), Closed: true},
			}, More: true,
		},
		"series reconcile": &raftlogv1.SeriesReconcile{
			Name: "invoices", Scope: []string{"2026", "BERLIN"},
			Numbers: []*raftlogv1.SeriesKey{{Key: "a", Number: 7}, {Number: 8}}, Reason: "torn",
		},
		"series import": &raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Series{Series: &raftlogv1.SeriesRecord{
			Database: 3,
			Name:     "invoices", Definition: definition, Version: 2, Suspended: true, TimeUnixNano: 1 << 60, SinceUnixNano: 1 << 59, Final: true,
		}}},
		"series import, numbers": &raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Numbers{Numbers: &raftlogv1.SeriesNumbersRecord{
			Database: 3, Name: "invoices", Scope: []string{"2026"}, Closed: true, Begin: 2, First: 257,
			Numbers: []*raftlogv1.SeriesStored{stored, {Key: "b", State: 2}}, Origin: origin,
		}}},
		"series import, a begin": &raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Numbers{Numbers: &raftlogv1.SeriesNumbersRecord{
			Database: 3, Name: "invoices", Scope: []string{"2026"}, First: 543, Begin: 543,
		}}},
		"join token create": &raftlogv1.JoinTokenCreate{TokenHash: id, Tag: "C", Watcher: true, ValidNanos: 1 << 50},
	}
	cases := map[string]operation{}
	for name, payload := range payloads {
		cases[name] = operation{Envelope: Envelope{Database: "shop"}, payload: payload}
	}
	for key, request := range requests {
		for principal, p := range map[string]*string{"no principal": nil, "anonymous": proto.String(""), "named": proto.String("CN=größe")} {
			for _, kind := range []string{"identity next", "claim"} {
				e := Envelope{Database: "default", Request: request, Principal: p}
				cases[fmt.Sprintf("%s, %s, %s", kind, key, principal)] = operation{Envelope: e, payload: payloads[kind]}
			}
		}
	}
	cases["on the cluster"] = operation{payload: payloads["format raise"]}
	cases["member announce, with a key"] = operation{
		Envelope: Envelope{Request: requests["key alone"]}, payload: payloads["member announce"],
	}
	return cases
}

var requests = map[string]*RequestKey{
	"no key":      nil,
	"key alone":   {Key: [16]byte{1, 15: 2}},
	"first try":   {Key: [16]byte{1, 15: 2}, Fingerprint: 1 << 63, Since: 300},
	"retry":       {Key: [16]byte{1, 15: 2}, Fingerprint: 7, Retry: true, Since: math.MaxUint64},
	"key of zero": {Retry: true},
}

// result is an encoded result, and its decoding by the generated code.
type result struct {
	encoded []byte
	want    *raftlogv1.Result
}

// results has results of each kind.
func results() map[string]result {
	at := func(index uint64, appendTo func([]byte) []byte, want *raftlogv1.Result) result {
		want.LogIndex = index
		return result{appendTo(AppendLogIndex(nil, index)), want}
	}
	answer := func(m proto.Message) func([]byte) []byte {
		return func(dst []byte) []byte { return AppendAnswer(dst, m) }
	}
	value := func(v int64) result {
		return at(300, func(dst []byte) []byte { return AppendValue(dst, v) }, &raftlogv1.Result{Result: &raftlogv1.Result_Value{Value: v}})
	}
	rolesBefore := func(v uint64) result {
		return at(7, func(dst []byte) []byte { return AppendRolesBefore(dst, v) },
			&raftlogv1.Result{Result: &raftlogv1.Result_RolesBefore{RolesBefore: v}})
	}
	seeded := func(before, v int64) result {
		return at(300, func(dst []byte) []byte { return AppendValue(AppendBefore(dst, before), v) },
			&raftlogv1.Result{Before: &before, Result: &raftlogv1.Result_Value{Value: v}})
	}
	blocks := func(index uint64, blocks ...identity.Block) result {
		next := &raftlogv1.IdentityNextResult{}
		for _, b := range blocks {
			next.Values = append(next.Values, &raftlogv1.Values{First: b.First, Last: b.Last})
		}
		return at(index, func(dst []byte) []byte { return AppendBlocks(dst, blocks) },
			&raftlogv1.Result{Result: &raftlogv1.Result_IdentityNext{IdentityNext: next}})
	}
	refusal := func(r *raftlogv1.Refusal) result { return at(9, answer(r), &raftlogv1.Result{Refusal: r}) }
	refused := &raftlogv1.Refusal{Reason: raftlogv1.RefusalReason_REFUSAL_REASON_QUOTA, Field: "name", Detail: "the limit of größe is reached"}
	hilo := &raftlogv1.HiLoNextResult{Low: 1, High: 32, Size: 32, TimeUnixNano: 1 << 60, Token: 1 << 63, ServerTag: "A", ServerPrefix: "eu"}
	returned := &raftlogv1.HiLoReturnResult{Returned: true, Max: 33}
	etags := &raftlogv1.EtagRecord{
		Start: 2, Clean: true, Floor: 5,
		Ceilings: []*raftlogv1.EtagCeiling{{Database: "shop", Ceiling: 9, Last: 8, Floor: 5}},
	}
	member := &raftlogv1.MemberResult{
		Member:  &raftlogv1.Member{Id: []byte("0123456789abcdef"), Tag: "A", LogFormat: 3},
		Session: 12, Etags: etags,
	}
	merged := &raftlogv1.MergeResult{Created: 1, Raised: 2, Claimed: 3, Unchanged: 4, Conflicts: []string{"users/1", "users/2"}}
	pool := &raftlogv1.PoolDefined{
		Layout:      &raftlogv1.PoolLayout{EpochUnixMilli: 1 << 40, UnitMilli: 10, TimeBits: 39, WorkerBits: 16, SequenceBits: 8},
		WindowNanos: 1 << 40,
	}
	mergedCluster := &raftlogv1.MergeClusterResult{Floor: 1000, Given: 1, Shared: []string{"A"}, Resume: "0/0/a"}
	number := &raftlogv1.SeriesNumber{
		Key: "a", Label: "till", Scope: []string{"2026", "BERLIN"}, Number: 7, Text: "INV-7", State: 1, Overdue: true, Date: -1,
		TakenUnixNano: 1 << 60, ExpiresUnixNano: 1<<60 + 1, Reason: "torn",
	}
	first := &raftlogv1.SeriesNumbers{
		Numbers: []*raftlogv1.SeriesNumber{{Key: "a", Number: 1}},
		Before:  &raftlogv1.SeriesLast{Scope: []string{"2025"}, Last: 9},
	}
	begun := &raftlogv1.SeriesNumbers{Numbers: []*raftlogv1.SeriesNumber{{Key: "a", Number: 1}}, Begun: true}
	numbers := &raftlogv1.SeriesNumbers{Numbers: []*raftlogv1.SeriesNumber{number, {Key: "b", Number: 8, State: 2}}}
	noted := &raftlogv1.SeriesNumbers{Numbers: []*raftlogv1.SeriesNumber{{Key: "a", Number: 7, Note: "CAF 77"}}}
	beyond := &raftlogv1.EtagResult{Refused: []string{"a", "b"}}
	return map[string]result{
		"nothing":                   at(7, func(dst []byte) []byte { return dst }, &raftlogv1.Result{}),
		"refusal":                   refusal(refused),
		"refusal, reason alone":     refusal(&raftlogv1.Refusal{Reason: raftlogv1.RefusalReason_REFUSAL_REASON_INVALID}),
		"value":                     value(42),
		"value, zero":               value(0),
		"value, negative":           value(-1),
		"seeded":                    seeded(-3, 42),
		"seeded, zero":              seeded(0, 0),
		"values":                    blocks(300, identity.Block{First: 3, Last: 3}),
		"values, several":           blocks(1<<40, identity.Block{First: 1, Last: 199}, identity.Block{First: 201, Last: math.MaxInt64}),
		"values, zero and negative": blocks(7, identity.Block{First: -5, Last: 0}, identity.Block{}),
		"values, none":              blocks(7),
		"values, at no index":       blocks(0, identity.Block{First: 1, Last: 1}),
		"hilo next":                 at(8, answer(hilo), &raftlogv1.Result{Result: &raftlogv1.Result_HiloNext{HiloNext: hilo}}),
		"hilo return":               at(8, answer(returned), &raftlogv1.Result{Result: &raftlogv1.Result_HiloReturn{HiloReturn: returned}}),
		"member":                    at(12, answer(member), &raftlogv1.Result{Result: &raftlogv1.Result_Member{Member: member}}),
		"merge":                     at(8, answer(merged), &raftlogv1.Result{Result: &raftlogv1.Result_Merge{Merge: merged}}),
		"database delete": at(8, answer(&raftlogv1.DatabaseDeleted{Names: 1000, More: true}), &raftlogv1.Result{
			Result: &raftlogv1.Result_DatabaseDeleted{DatabaseDeleted: &raftlogv1.DatabaseDeleted{Names: 1000, More: true}},
		}),
		"merge cluster": at(8, answer(mergedCluster),
			&raftlogv1.Result{Result: &raftlogv1.Result_MergeCluster{MergeCluster: mergedCluster}}),
		"roles before":       rolesBefore(300),
		"roles before, none": rolesBefore(0),
		"refusal, with a number": refusal(&raftlogv1.Refusal{
			Reason:       raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_KEY_CONFLICT,
			SeriesNumber: number,
		}),
		"series numbers, before": at(8, answer(first), &raftlogv1.Result{Result: &raftlogv1.Result_SeriesNumbers{SeriesNumbers: first}}),
		"series numbers, noted":  at(8, answer(noted), &raftlogv1.Result{Result: &raftlogv1.Result_SeriesNumbers{SeriesNumbers: noted}}),
		"series numbers, begun":  at(8, answer(begun), &raftlogv1.Result{Result: &raftlogv1.Result_SeriesNumbers{SeriesNumbers: begun}}),
		"series numbers":         at(8, answer(numbers), &raftlogv1.Result{Result: &raftlogv1.Result_SeriesNumbers{SeriesNumbers: numbers}}),
		"pool defined":           at(8, answer(pool), &raftlogv1.Result{Result: &raftlogv1.Result_PoolDefined{PoolDefined: pool}}),
		"etag":                   at(8, answer(beyond), &raftlogv1.Result{Result: &raftlogv1.Result_Etag{Etag: beyond}}),
	}
}
