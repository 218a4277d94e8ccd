package service

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/server/apierror"
)

func TestGenerateGUID(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	for _, template := range []string{"", " \t"} {
		res, err := n.Generate(context.Background(), &idnodev1.GenerateRequest{Template: template, Count: 3})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, id := range res.Ids {
			u, err := uuid.Parse(id)
			if err != nil || u.Version() != 4 || id != strings.ToLower(id) || len(id) != 36 || seen[id] {
				t.Errorf("%q is no new version 4 UUID: %v", id, err)
			}
			seen[id] = true
		}
		if len(res.Ids) != 3 || res.Blocks != nil || res.Strategy != idnodev1.Strategy_STRATEGY_GUID || res.LogIndex != 0 {
			t.Errorf("answer %+v", res)
		}
	}
	if n.world.Proposals() != 0 {
		t.Error("a GUID went through the log")
	}
}

// TestGenerateTimeOrdered: each id is greater than the id before it, within an answer and across
// answers, and has its time.
func TestGenerateTimeOrdered(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	last, begin := "", time.Now().Truncate(time.Millisecond)
	for range 3 {
		res, err := n.Generate(context.Background(), &idnodev1.GenerateRequest{Count: 10_000, TimeOrdered: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range res.Ids {
			u, err := uuid.Parse(id)
			if err != nil || u.Version() != 7 || u.Variant() != uuid.RFC4122 || id <= last {
				t.Fatalf("%q is no version 7 UUID after %q: %v", id, last, err)
			}
			last = id
		}
		if res.Strategy != idnodev1.Strategy_STRATEGY_GUID {
			t.Errorf("strategy %v", res.Strategy)
		}
		if at := time.Unix(uuid.MustParse(res.Ids[0]).Time().UnixTime()); at.Before(begin) {
			t.Errorf("made at %v, before %v", at, begin)
		}
	}
}

func TestGenerateServerSide(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	ctx := context.Background()
	res, err := n.Generate(ctx, &idnodev1.GenerateRequest{Template: "Users/", Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	same(t, res, &idnodev1.GenerateResponse{
		Ids:      []string{"Users/0000000000000000001-A", "Users/0000000000000000002-A"},
		Blocks:   []*idnodev1.IdBlock{{Prefix: "Users/", First: 1, Last: 2, Width: 19, Suffix: "-A"}},
		Strategy: idnodev1.Strategy_STRATEGY_SERVER_SIDE, NodeTag: "A",
	})
	res, err = n.Generate(ctx, &idnodev1.GenerateRequest{Database: "Other", Template: "Users/", Count: 1_000_000, BlocksOnly: true})
	if err != nil || res.Ids != nil || res.Blocks[0].Last != 1_000_000 {
		t.Fatalf("%+v %v", res, err)
	}
	if n.etags.last["other"] != 1_000_000 {
		t.Errorf("the database was not folded: %v", n.etags.last)
	}
	if n.world.Proposals() != 0 {
		t.Error("a server-side id went through the log")
	}
}

// TestServerSideWithoutTag: before the cluster confirmed the tag, no id may carry
// it.
func TestServerSideWithoutTag(t *testing.T) {
	n := newNode(t, newWorld(t), func(c *Config) { c.Tag = func() (string, bool) { return "A", false } })
	_, err := n.Generate(context.Background(), &idnodev1.GenerateRequest{Template: "users/"})
	wantError(t, err, apierror.CodeFailedPrecondition, apierror.ReasonNodeTagNotAssigned, "")
	if len(n.etags.last) != 0 {
		t.Error("an etag was taken")
	}
}

func TestServerSideEtagErrors(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	tests := []struct {
		err    error
		code   apierror.Code
		reason string
	}{
		{etag.StartingError("the node waits"), apierror.CodeUnavailable, apierror.ReasonStarting},
		{etag.ErrExhausted, apierror.CodeOutOfRange, apierror.ReasonCounterExhausted},
		{etag.ErrTooManyDatabases, apierror.CodeResourceExhausted, apierror.ReasonQuota},
		{etag.ErrStalled, apierror.CodeUnavailable, apierror.ReasonOverloaded},
		{etag.ErrClosed, apierror.CodeUnavailable, apierror.ReasonStopping},
		{etag.ErrBroken, apierror.CodeDataLoss, apierror.ReasonCorrupt},
		{context.Canceled, apierror.CodeInternal, apierror.ReasonInternal},
	}
	for _, tt := range tests {
		n.etags.err = tt.err
		_, err := n.Generate(context.Background(), &idnodev1.GenerateRequest{Template: "users/"})
		wantError(t, err, tt.code, tt.reason, "")
	}
	n.etags.err = nil
	n.etags.last = map[string]uint64{"default": etag.MaxEtag - 1}
	if _, err := n.Generate(context.Background(), &idnodev1.GenerateRequest{Template: "users/"}); err != nil {
		t.Errorf("the last etag: %v", err)
	}
	_, err := n.Generate(context.Background(), &idnodev1.GenerateRequest{Template: "users/"})
	wantError(t, err, apierror.CodeOutOfRange, apierror.ReasonCounterExhausted, "")
}

func TestGenerateIdentity(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	ctx := context.Background()
	first, err := n.Generate(ctx, &idnodev1.GenerateRequest{Template: "Users|"})
	if err != nil {
		t.Fatal(err)
	}
	same(t, first, &idnodev1.GenerateResponse{
		Ids: []string{"Users/1"}, Blocks: []*idnodev1.IdBlock{{Prefix: "Users/", First: 1, Last: 1}},
		Strategy: idnodev1.Strategy_STRATEGY_IDENTITY, NodeTag: "A", LogIndex: first.LogIndex,
	})
	if first.LogIndex == 0 {
		t.Error("no log index")
	}
	second, err := n.Generate(ctx, &idnodev1.GenerateRequest{Template: "users|", Separator: ":", Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	same(t, second.Ids, []string{"users:2", "users:3"})
	blocks, err := n.Generate(ctx, &idnodev1.GenerateRequest{Template: "users|", Count: 1_000_000, BlocksOnly: true})
	if err != nil || blocks.Ids != nil || blocks.Blocks[0].First != 4 || blocks.Blocks[0].Last != 1_000_003 {
		t.Fatalf("%+v %v", blocks, err)
	}
}

// TestGenerateStepsOverClaims: a claimed value is not given, and the block comes
// in pieces.
func TestGenerateStepsOverClaims(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	ctx := context.Background()
	for _, id := range []string{"companies/3", "COMPANIES/5"} {
		res, err := n.Generate(ctx, &idnodev1.GenerateRequest{Template: id, Claim: true})
		if err != nil || res.Ids[0] != id || res.LogIndex == 0 {
			t.Fatalf("claim %s: %+v %v", id, res, err)
		}
	}
	res, err := n.Generate(ctx, &idnodev1.GenerateRequest{Template: "companies|", Count: 4})
	if err != nil {
		t.Fatal(err)
	}
	same(t, res.Ids, []string{"companies/1", "companies/2", "companies/4", "companies/6"})
	if len(res.Blocks) != 3 {
		t.Errorf("blocks %+v", res.Blocks)
	}
	_, err = n.Claim(ctx, &idnodev1.ClaimRequest{Id: "Companies/4"})
	wantError(t, err, apierror.CodeAlreadyExists, apierror.ReasonIDClaimed, "id")
}

func TestGenerateSemantic(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	ctx := context.Background()
	longest := strings.Repeat("x", docid.MaxIDBytes)
	for _, id := range []string{"users/ayende@example.org", longest, "a/b", "x"} {
		res, err := n.Generate(ctx, &idnodev1.GenerateRequest{Template: id})
		if err != nil {
			t.Fatal(err)
		}
		same(t, res, &idnodev1.GenerateResponse{Ids: []string{id}, Strategy: idnodev1.Strategy_STRATEGY_SEMANTIC, NodeTag: "A"})
	}
	if n.world.Proposals() != 0 {
		t.Error("a semantic id went through the log without a claim")
	}
	if _, err := n.Generate(ctx, &idnodev1.GenerateRequest{Template: longest, Claim: true}); err != nil {
		t.Errorf("claim the longest id: %v", err)
	}
	_, err := n.Generate(ctx, &idnodev1.GenerateRequest{Template: strings.ToUpper(longest), Claim: true})
	wantError(t, err, apierror.CodeAlreadyExists, apierror.ReasonIDClaimed, "template")
}

// TestGenerateLimits holds every limit: at it all is well, beyond it the request
// is refused with the field named, and nothing is taken.
func TestGenerateLimits(t *testing.T) {
	id := &idnodev1.RequestId{Id: "x"}
	long := func(n int) string { return strings.Repeat("x", n) }
	tests := []struct {
		name          string
		req           *idnodev1.GenerateRequest
		reason, field string // empty: accepted
	}{
		{"database", &idnodev1.GenerateRequest{Database: long(128), Template: "u|"}, "", ""},
		{"database too long", &idnodev1.GenerateRequest{Database: long(129), Template: "u|"}, apierror.ReasonInvalidDatabase, "database"},
		{"database with a slash", &idnodev1.GenerateRequest{Database: "a/b", Template: "u|"}, apierror.ReasonInvalidDatabase, "database"},
		{"separator", &idnodev1.GenerateRequest{Separator: "ab", Template: "u|"}, apierror.ReasonInvalidSeparator, "separator"},
		{"backslash", &idnodev1.GenerateRequest{Template: `a\b`}, apierror.ReasonInvalidID, "template"},
		{"not UTF-8", &idnodev1.GenerateRequest{Template: "a\xff"}, apierror.ReasonInvalidID, "template"},
		{"longest semantic", &idnodev1.GenerateRequest{Template: long(2025)}, "", ""},
		{"semantic too long", &idnodev1.GenerateRequest{Template: long(2026)}, apierror.ReasonInvalidID, "template"},
		{"longest identity", &idnodev1.GenerateRequest{Template: long(2000) + "|"}, "", ""},
		{"identity too long", &idnodev1.GenerateRequest{Template: long(2001) + "|"}, apierror.ReasonInvalidID, "template"},
		{"identity folds too long", &idnodev1.GenerateRequest{Template: strings.Repeat("Ⱥ", 1000) + "|"}, apierror.ReasonInvalidID, "template"},
		{
			"claim folds too long", &idnodev1.GenerateRequest{Template: strings.Repeat("Ⱥ", 1000), Claim: true}, apierror.ReasonInvalidID,
			"template",
		},
		{"longest prefix", &idnodev1.GenerateRequest{Template: long(2003) + "/"}, "", ""},
		{"prefix too long", &idnodev1.GenerateRequest{Template: long(2004) + "/"}, apierror.ReasonInvalidID, "template"},
		{"empty identity", &idnodev1.GenerateRequest{Template: "|"}, apierror.ReasonInvalidID, "template"},
		{"two pipes", &idnodev1.GenerateRequest{Template: "u||"}, apierror.ReasonInvalidID, "template"},
		{"negative count", &idnodev1.GenerateRequest{Template: "u|", Count: -1}, apierror.ReasonInvalidCount, "count"},
		{"most ids", &idnodev1.GenerateRequest{Template: "u|", Count: 10_000}, "", ""},
		{"too many ids", &idnodev1.GenerateRequest{Template: "u|", Count: 10_001}, apierror.ReasonInvalidCount, "count"},
		{"most GUIDs", &idnodev1.GenerateRequest{Count: 10_000}, "", ""},
		{"too many GUIDs", &idnodev1.GenerateRequest{Count: 10_001}, apierror.ReasonInvalidCount, "count"},
		{"most bytes", &idnodev1.GenerateRequest{Template: long(1000) + "|", Count: 1022}, "", ""},
		{"too many bytes", &idnodev1.GenerateRequest{Template: long(1000) + "|", Count: 1030}, apierror.ReasonInvalidCount, "count"},
		{"most in blocks", &idnodev1.GenerateRequest{Template: "u|", Count: 1_000_000, BlocksOnly: true}, "", ""},
		{
			"too many in blocks", &idnodev1.GenerateRequest{Template: "u|", Count: 1_000_001, BlocksOnly: true}, apierror.ReasonInvalidCount,
			"count",
		},
		{"two of a semantic id", &idnodev1.GenerateRequest{Template: "u/1", Count: 2}, apierror.ReasonInvalidCount, "count"},
		{"blocks of GUIDs", &idnodev1.GenerateRequest{BlocksOnly: true}, apierror.ReasonInvalidBlocksOnly, "blocks_only"},
		{
			"blocks of a semantic id", &idnodev1.GenerateRequest{Template: "u/1", BlocksOnly: true}, apierror.ReasonInvalidBlocksOnly,
			"blocks_only",
		},
		{
			"identities in order of time", &idnodev1.GenerateRequest{Template: "u|", TimeOrdered: true}, apierror.ReasonInvalidTimeOrdered,
			"time_ordered",
		},
		{
			"a claim in order of time", &idnodev1.GenerateRequest{Template: "u/1", TimeOrdered: true}, apierror.ReasonInvalidTimeOrdered,
			"time_ordered",
		},
		{"claim of an identity", &idnodev1.GenerateRequest{Template: "u|", Claim: true}, apierror.ReasonInvalidClaim, "claim"},
		{"claim of a prefix", &idnodev1.GenerateRequest{Template: "u/", Claim: true}, apierror.ReasonInvalidClaim, "claim"},
		{"claim of a GUID", &idnodev1.GenerateRequest{Claim: true}, apierror.ReasonInvalidClaim, "claim"},
		{"request id with a GUID", &idnodev1.GenerateRequest{RequestId: id}, apierror.ReasonInvalidRequestID, "request_id"},
		{"request id with a prefix", &idnodev1.GenerateRequest{Template: "u/", RequestId: id}, apierror.ReasonInvalidRequestID, "request_id"},
		{"request id", &idnodev1.GenerateRequest{Template: "u|", RequestId: &idnodev1.RequestId{Id: long(64)}}, "", ""},
		{
			"empty request id", &idnodev1.GenerateRequest{Template: "u|", RequestId: &idnodev1.RequestId{}}, apierror.ReasonInvalidRequestID,
			"request_id",
		},
		{
			"request id of a block", &idnodev1.GenerateRequest{Template: "u|", RequestId: &idnodev1.RequestId{Id: "block.c0ffee.1"}},
			apierror.ReasonInvalidRequestID, "request_id",
		},
		{
			"request id too long", &idnodev1.GenerateRequest{Template: "u|", RequestId: &idnodev1.RequestId{Id: long(65)}},
			apierror.ReasonInvalidRequestID, "request_id",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t, newWorld(t), nil)
			res, err := n.Generate(context.Background(), tt.req)
			if tt.reason == "" {
				if err != nil {
					t.Fatal(err)
				}
				checkIDs(t, tt.req, res)
				return
			}
			wantError(t, err, apierror.CodeInvalidArgument, tt.reason, tt.field)
			if n.world.Proposals() != 0 || len(n.etags.last) != 0 {
				t.Error("a refused request took something")
			}
		})
	}
}

// checkIDs compares the ids of an answer with its blocks, and both with the request.
func checkIDs(t *testing.T, req *idnodev1.GenerateRequest, res *idnodev1.GenerateResponse) {
	t.Helper()
	var fromBlocks []string
	var total int64
	for _, b := range res.Blocks {
		total += b.Last - b.First + 1
		for v := b.First; v <= b.Last && !req.BlocksOnly; v++ {
			number := strconv.FormatInt(v, 10)
			for len(number) < int(b.Width) {
				number = "0" + number
			}
			fromBlocks = append(fromBlocks, b.Prefix+number+b.Suffix)
		}
	}
	if res.Blocks != nil {
		same(t, res.Ids, fromBlocks)
		if total != max(req.Count, 1) {
			t.Errorf("%d ids, want %d", total, req.Count)
		}
	}
	size := 0
	for _, id := range res.Ids {
		size += len(id)
		if len(id) > docid.MaxIDBytes {
			t.Errorf("an id has %d bytes", len(id))
		}
	}
	if size > MaxIDsBytes {
		t.Errorf("the ids have %d bytes together", size)
	}
}

func FuzzGenerate(f *testing.F) {
	f.Add("", "users/", "/", int64(1), false, false, "", uint64(0))
	f.Add("default", "users|", ":", int64(10_000), false, true, "x", uint64(3))
	f.Add("d", "users/ayende", "", int64(0), true, false, "y", uint64(0))
	f.Add("", "", "", int64(-1), false, false, "", uint64(0))
	f.Add("", "ȺȺ|", "Ⓐ", int64(70), false, false, "", uint64(0))
	w := newWorld(f)
	n := newNode(f, w, nil)
	f.Fuzz(func(t *testing.T, database, template, separator string, count int64, claim, blocks bool, id string, since uint64) {
		req := &idnodev1.GenerateRequest{
			Database: database, Template: template, Separator: separator, Count: count,
			Claim: claim, BlocksOnly: blocks,
		}
		if id != "" {
			req.RequestId = &idnodev1.RequestId{Id: id}
			if since != 0 {
				req.RequestId.RetrySince = &since
			}
		}
		before := w.Proposals()
		res, err := n.Generate(context.Background(), req)
		if err == nil {
			checkIDs(t, req, res)
			return
		}
		e, ok := err.(*apierror.Error)
		if !ok || e.Reason == "" || e.Message == "" || e.Code == apierror.CodeInternal {
			t.Fatalf("error %#v", err)
		}
		// Only the state can decide whether a name is new, and so must have no control characters.
		proposed := w.Proposals() != before && !strings.Contains(e.Message, "new names")
		if e.Code == apierror.CodeInvalidArgument && (e.Field == "" || proposed) {
			t.Fatalf("a malformed request was proposed, or its field is not named: %v", e)
		}
	})
}
