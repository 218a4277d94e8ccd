package service

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
	"github.com/idnode/idnode/test/fsmtest"
)

// groupBytes is the greatest size of a group of calls, and of a call with it: see
// commit.DefaultMaxGroupBytes.
const groupBytes = 64<<10 - 4

// measuring is a world that remembers the largest operation and result.
type measuring struct {
	*world
	operation, result, bound int
}

func (m *measuring) Propose(ctx context.Context, operation []byte) ([]byte, error) {
	result, err := m.world.Propose(ctx, operation)
	m.operation, m.result, m.bound = max(m.operation, len(operation)), max(m.result, len(result)), max(m.bound, op.ResultBound(operation))
	return result, err
}

// texts returns n different texts of a size.
func texts(n, size int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%0*d", size, i))
	}
	return all
}

// Calls at the limits that docs/operate/limits.md has, which fit into a group of the log, and their results into its answer.
var (
	largestDatabase = strings.Repeat("d", docid.MaxDatabaseBytes)
	longestName     = strings.Repeat("ü", docid.MaxNameBytes/2)
)

// largestCalls are calls with their names.
type largestCalls []struct {
	name string
	call func() error
}

// newMeasuring returns a node whose caller has all rights.
func newMeasuring(t *testing.T) (*measuring, node, context.Context) {
	t.Helper()
	m := &measuring{world: newWorld(t)}
	n := newNode(t, m.world, func(c *Config) { c.Proposer = m })
	n.setRoles(t, toEveryone())
	return m, n, as(strings.Repeat("o", 1000))
}

func toEveryone() rights.Role {
	role := everything()
	role.Principals = []string{rights.Any}
	return role
}

// fit measures the calls.
func (m *measuring) fit(t *testing.T, calls largestCalls) {
	t.Helper()
	for _, c := range calls {
		m.operation, m.result, m.bound = 0, 0, 0
		if err := c.call(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		t.Logf("%s: %d bytes, answered with %d of at most %d", c.name, m.operation, m.result, m.bound)
		if m.operation == 0 || m.operation > groupBytes {
			t.Errorf("%s: an operation of %d bytes, more than a group of %d", c.name, m.operation, groupBytes)
		}
		if m.result > m.bound || m.bound > raftlog.MaxResultBytes {
			t.Errorf("%s: a result of %d bytes, said to have at most %d, of %d for a group", c.name, m.result, m.bound, raftlog.MaxResultBytes)
		}
	}
}

// TestTheLargestCallsOfIdsFit: ids, and the table of roles.
func TestTheLargestCallsOfIdsFit(t *testing.T) {
	m, n, ctx := newMeasuring(t)
	database, longest := largestDatabase, longestName
	id := func(text string) *idnodev1.RequestId {
		return &idnodev1.RequestId{Id: strings.Repeat(text, MaxRequestIDBytes)}
	}
	m.fit(t, largestCalls{
		{"identities", func() error {
			_, err := n.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Database: database, Name: longest, Count: 1_000_000, RequestId: id("a")})
			return err
		}},
		{"a range", func() error {
			_, err := n.NextRange(ctx,
				&idnodev1.NextRangeRequest{Database: database, Tag: longest, Label: strings.Repeat("L", 64), RequestId: id("b")})
			return err
		}},
		{"a claim", func() error {
			_, err := n.Claim(ctx, &idnodev1.ClaimRequest{Database: database, Id: strings.Repeat("i", docid.MaxIDBytes), RequestId: id("c")})
			return err
		}},
		{"a claim that is refused", func() error {
			_, err := n.Claim(ctx, &idnodev1.ClaimRequest{Database: database, Id: strings.Repeat("i", docid.MaxIDBytes)})
			if err == nil {
				t.Error("claimed twice")
			}
			return nil
		}},
		{"roles", func() error {
			roles := Roles{Roles: []rights.Role{toEveryone(), {Name: "many", Grants: toEveryone().Grants}}}
			roles.Roles[1].Principals = texts(590, 98) // 100 bytes each.
			_, err := n.SetRoles(ctx, &idnodev1.SetRolesRequest{Table: roles.Message()})
			return err
		}},
	})
}

// TestTheLargestCallsOfSeriesFit, and the largest record of a backup.
func TestTheLargestCallsOfSeriesFit(t *testing.T) {
	m, n, ctx := newMeasuring(t)
	database, longest := largestDatabase, longestName
	keys := texts(series.MaxKeys, MaxSeriesKeyBytes/series.MaxKeys)
	// Seven values fill a text; with a label, and with a reason later.
	values, template := map[string]string{}, ""
	for _, name := range "abcefgk" {
		values[string(name)] = strings.Repeat("X", format.MaxValueBytes)
		template += fmt.Sprintf("{%c:%d}", name, format.MaxValueBytes)
	}
	take := &idnodev1.TakeNumbersRequest{
		Database: database, Series: longest, Keys: keys, Values: values,
		Label: strings.Repeat("L", series.MaxLabelBytes),
	}
	var bounds []*idnodev1.NumberOf
	for i, key := range keys {
		bounds = append(bounds, &idnodev1.NumberOf{Key: key, Number: int64(i + 1)})
	}
	m.fit(t, largestCalls{
		{"a series", func() error {
			_, err := n.DefineSeries(ctx,
				&idnodev1.DefineSeriesRequest{
					Database: database, Name: longest,
					Definition: definitionMessage(series.Definition{Format: template + "{number:16}"}),
				})
			return err
		}},
		{"numbers", func() error { _, err := n.TakeNumbers(ctx, take); return err }},
		{"numbers again", func() error { _, err := n.TakeNumbers(ctx, take); return err }},
		{"numbers that are voided", func() error {
			_, err := n.VoidNumbers(ctx,
				&idnodev1.VoidNumbersRequest{Database: database, Series: longest, Keys: bounds, Reason: strings.Repeat("R", series.MaxReasonBytes)})
			return err
		}},
		{"numbers with the longest numbers", func() error {
			for _, of := range bounds {
				of.Number = math.MaxInt64
			}
			_, _ = n.VoidNumbers(ctx, // Refused, as no key has such a number.
				&idnodev1.VoidNumbersRequest{Database: database, Series: longest, Keys: bounds, Reason: strings.Repeat("R", series.MaxReasonBytes)})
			return nil
		}},
		{"a record of a backup", func() error {
			record := &raftlogv1.SeriesNumbersRecord{Name: "receipts", Scope: []string{}, First: 1}
			for _, key := range texts(128, series.MaxKeyBytes) {
				record.Numbers = append(record.Numbers, &raftlogv1.SeriesStored{
					Key: key, Label: strings.Repeat("L", series.MaxLabelBytes), State: uint32(series.Voided), Shared: true, Date: math.MaxInt32 / 2,
					TakenUnixNano: math.MaxInt64, ExpiresUnixNano: math.MaxInt64, Reason: strings.Repeat("R", series.MaxReasonBytes),
				})
			}
			imported, err := proto.Marshal(&raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Numbers{Numbers: record}})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = n.ImportSeries(ctx, &idnodev1.ImportSeriesRequest{Database: database, Record: imported}) // There is no such series.
			return nil
		}},
	})
}

// TestTheLargestMergesFit: as many names as a call may have, and as many bytes.
func TestTheLargestMergesFit(t *testing.T) {
	m, n, ctx := newMeasuring(t)
	database := largestDatabase
	merged := func(names []string) (all []*idnodev1.HiLoValue) {
		for _, name := range names {
			all = append(all, &idnodev1.HiLoValue{Tag: name, Max: math.MaxInt64 - 1, Peak: math.MaxInt64})
		}
		return all
	}
	identities := func(names []string) (all []*idnodev1.IdentityValue) {
		for _, name := range names {
			all = append(all, &idnodev1.IdentityValue{Name: name, Value: -1, Deleted: true})
		}
		return all
	}
	names := texts(MaxMergeNames, (MaxMergeBytes-len(database))/MaxMergeNames)
	m.fit(t, largestCalls{
		{"a merge of HiLo counters", func() error {
			_, err := n.MergeCounters(ctx, mergeIn(&idnodev1.DatabaseMerge{Database: database, Hilos: merged(names)}))
			return err
		}},
		{"a merge of identities", func() error {
			_, err := n.MergeCounters(ctx, mergeIn(&idnodev1.DatabaseMerge{Database: database, Identities: identities(names)}))
			return err
		}},
		{"a merge of claims", func() error {
			_, err := n.MergeCounters(ctx, mergeIn(&idnodev1.DatabaseMerge{Database: database, Claims: names}))
			return err
		}},
	})
}

// ProposeAll implements Proposer.
func (m *measuring) ProposeAll(ctx context.Context, operations [][]byte) ([][]byte, []error) {
	return fsmtest.Each(ctx, m.Propose, operations)
}
