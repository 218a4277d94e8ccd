package op

import (
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// largestNumber is a number of a series with all that its limits allow. Its text has all
// values of its scope, whose names fill the template: 26 of one letter, then of two.
func largestNumber() *raftlogv1.SeriesNumber {
	n := &raftlogv1.SeriesNumber{
		Key: strings.Repeat("k", series.MaxKeyBytes), Label: strings.Repeat("l", series.MaxLabelBytes), Scope: []string{"2026-12-31"},
		Number: math.MaxInt64, Text: strings.Repeat("t", format.MaxTextBytes), State: math.MaxUint8, Overdue: true, Date: math.MinInt32,
		TakenUnixNano: -1, ExpiresUnixNano: -1, Reason: strings.Repeat("r", series.MaxReasonBytes),
		Note: strings.Repeat("n", series.MaxNoteBytes),
	}
	values := 26 + (format.MaxTemplateBytes-26*len("{a}")-len("{number}"))/len("{ab}")
	for i := range values {
		n.Scope = append(n.Scope, strings.Repeat("v", (i+1)*format.MaxTextBytes/values-i*format.MaxTextBytes/values))
	}
	return n
}

// TestResultBound: the largest results of each kind are within the bound of the smallest
// operation that has them.
func TestResultBound(t *testing.T) {
	address := strings.Repeat("a", 512)
	member := &raftlogv1.Member{
		Id: make([]byte, 16), Tag: "ABCD", GrpcAddress: address, RaftAddress: address, HttpAddress: address, Watcher: true,
		Voter: true, Removed: true,
		LogFormat: math.MaxUint32, Starts: math.MaxUint64, Process: 1,
	}
	number, keys := largestNumber(), make([]string, series.MaxKeys)
	numbers := &raftlogv1.SeriesNumbers{Before: &raftlogv1.SeriesLast{Scope: number.GetScope(), Last: math.MaxInt64}}
	ended := make([]*raftlogv1.SeriesKey, series.MaxKeys)
	for i := range keys {
		keys[i], ended[i] = "k", &raftlogv1.SeriesKey{Key: "k"}
		numbers.Numbers = append(numbers.Numbers, number)
	}
	blocks := &raftlogv1.IdentityNextResult{}
	for range 64 { // identity.MaxPieces
		blocks.Values = append(blocks.Values, &raftlogv1.Values{First: -1, Last: -1})
	}
	refusal := &raftlogv1.Refusal{
		Reason: math.MaxInt16, Field: "expected_version", SeriesNumber: number,
		Detail: strings.Repeat("d", 2*4*series.MaxKeyBytes+4*format.MaxTextBytes),
	}
	for name, c := range map[string]struct {
		payload proto.Message
		result  *raftlogv1.Result
	}{
		"identities": {&raftlogv1.IdentityNext{Name: "n"}, &raftlogv1.Result{Result: &raftlogv1.Result_IdentityNext{IdentityNext: blocks}}},
		"a member": {
			&raftlogv1.MemberRemove{Tag: "A"},
			&raftlogv1.Result{Result: &raftlogv1.Result_Member{Member: &raftlogv1.MemberResult{Member: member, Session: math.MaxUint64}}},
		},
		"an announcement": {
			&raftlogv1.MemberAnnounce{},
			&raftlogv1.Result{Result: &raftlogv1.Result_Member{Member: &raftlogv1.MemberResult{
				Member: member, Session: math.MaxUint64,
				Etags: &raftlogv1.EtagRecord{Start: math.MaxUint64, Clean: true},
			}}},
		},
		"numbers": {
			&raftlogv1.SeriesTake{Name: "n", Keys: keys},
			&raftlogv1.Result{Result: &raftlogv1.Result_SeriesNumbers{SeriesNumbers: numbers}},
		},
		"ended numbers": {
			&raftlogv1.SeriesEnd{Name: "n", Keys: ended},
			&raftlogv1.Result{Result: &raftlogv1.Result_SeriesNumbers{SeriesNumbers: numbers}},
		},
		"reconciled ones": {
			&raftlogv1.SeriesReconcile{Name: "n", Numbers: ended},
			&raftlogv1.Result{Result: &raftlogv1.Result_SeriesNumbers{SeriesNumbers: numbers}},
		},
		"a refusal": {&raftlogv1.SeriesTake{Name: "n", Keys: []string{"k"}}, &raftlogv1.Result{Refusal: refusal}},
	} {
		operation, err := Envelope{}.Encode(c.payload)
		if err != nil {
			t.Fatal(err)
		}
		c.result.LogIndex = math.MaxUint64
		size, bound := proto.Size(c.result), ResultBound(operation)
		t.Logf("%s: %d of at most %d bytes", name, size, bound)
		if size > bound || bound > raftlog.MaxResultBytes {
			t.Errorf("%s: a result of %d bytes, said to have at most %d", name, size, bound)
		}
	}
}

// TestCallsShareAGroup: the bound on results splits no group of operations that are not of
// series.
func TestCallsShareAGroup(t *testing.T) {
	const operations, bytes = 512, 64 << 10 // commit.DefaultMaxOperations, DefaultMaxGroupBytes
	if most := operations*ResultBound(nil) + quotedBound*bytes; most > raftlog.MaxResultBytes {
		t.Errorf("%d operations of %d bytes have %d bytes of results", operations, bytes, most)
	}
}
