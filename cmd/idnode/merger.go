package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"google.golang.org/grpc"

	"github.com/idnode/idnode/docid"
	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/transfer/counterfile"
)

// Bounds of one merge, below what a server takes.
const (
	mergeNames = 1000
	mergeBytes = 32_000
)

// merger sends counters to the cluster in batches, each of one database. A batch
// may be sent any number of times, so it goes on through elections.
type merger struct {
	client *clusterClient
	dryRun bool
	// skip is added to every value.
	skip     int64
	progress *progress

	batch *idnodev1.MergeCountersRequest
	names int
	bytes int
	sent  int64
	// total is what all batches together did.
	total *idnodev1.MergeCountersResponse
	// changed, if set, gets each change of a dry run.
	changed func(database string, c *idnodev1.CounterChange)
}

func newMerger(s *clusterClient, p *progress) *merger {
	return &merger{client: s, progress: p, total: &idnodev1.MergeCountersResponse{}}
}

// add takes one counter; the batch before it may be sent.
func (m *merger) add(ctx context.Context, c counterfile.Counter) error {
	full := m.names >= mergeNames || m.bytes+len(c.Name) > mergeBytes
	if m.batch != nil && (full || m.batch.GetDatabase() != c.Database) {
		if err := m.send(ctx); err != nil {
			return err
		}
	}
	if m.batch == nil {
		m.batch = &idnodev1.MergeCountersRequest{Database: c.Database, DryRun: m.dryRun}
	}
	m.names, m.bytes = m.names+1, m.bytes+len(c.Name)
	switch c.Kind {
	case counterfile.Claim:
		m.batch.Claims = append(m.batch.Claims, c.Name)
	case counterfile.HiLo:
		m.batch.Hilos = append(m.batch.Hilos, &idnodev1.HiLoValue{
			Tag: c.Name, Max: plus(c.Value, m.skip), Peak: plus(max(c.Peak, c.Value), m.skip),
		})
	default:
		m.batch.Identities = append(m.batch.Identities, &idnodev1.IdentityValue{
			Name: c.Name, Value: plus(c.Value, m.skip), Deleted: c.Kind == counterfile.DeletedIdentity,
		})
	}
	return nil
}

// plus adds what is not negative, and stays at the greatest number.
func plus(value, add int64) int64 {
	if value > math.MaxInt64-add {
		return math.MaxInt64
	}
	return value + add
}

// flush sends what is left.
func (m *merger) flush(ctx context.Context) error {
	if m.batch == nil {
		return nil
	}
	return m.send(ctx)
}

// send sends the batch.
func (m *merger) send(ctx context.Context) error {
	batch := m.batch
	var res *idnodev1.MergeCountersResponse
	err := m.client.insist(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
		res, err = idnodev1.NewAdminServiceClient(conn).MergeCounters(ctx, batch)
		return err
	})
	if err != nil {
		return err
	}
	m.sent += int64(m.names)
	m.batch, m.names, m.bytes = nil, 0, 0
	t := m.total
	t.Created += res.GetCreated()
	t.Raised += res.GetRaised()
	t.Claimed += res.GetClaimed()
	t.Unchanged += res.GetUnchanged()
	t.Conflicts = append(t.Conflicts, res.GetConflicts()...)
	t.LogIndex = max(t.LogIndex, res.GetLogIndex())
	for _, c := range res.GetChanges() {
		if m.changed != nil {
			m.changed(batch.GetDatabase(), c)
		}
	}
	m.progress.say("%d names merged", m.sent)
	return nil
}

// Long work outlives a cluster that is without a leader for some time.
const (
	insistFor   = time.Minute
	insistPause = 200 * time.Millisecond
)

// insist makes a call that may be repeated until it is answered, for a minute at
// most: long work must not end because a leader did.
func (s *clusterClient) insist(ctx context.Context, call attempt) error {
	deadline := time.Now().Add(insistFor)
	for {
		err := s.try(ctx, repeatable, call)
		if err == nil || !mayPass(err) || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(insistPause):
		}
	}
}

// mayPass says whether the same call may do better in a moment.
func mayPass(err error) bool {
	return effectOf(err) != effectRefused || exitCode(err) == exitUnavailable || reasonOf(err) == "OVERLOADED"
}

// printMerged says what a merge did, or would do.
func printMerged(w io.Writer, m *idnodev1.MergeCountersResponse, dryRun bool) {
	would := ""
	if dryRun {
		would = "would be "
	}
	fields(w, [][2]string{
		{"created", fmt.Sprintf("%d counters %snew", m.GetCreated(), would)},
		{"raised", fmt.Sprintf("%d counters %sraised", m.GetRaised(), would)},
		{"claimed", fmt.Sprintf("%d ids %sclaimed", m.GetClaimed(), would)},
		{"unchanged", fmt.Sprintf("%d are as high, or claimed, already", m.GetUnchanged())},
	})
	for _, id := range m.GetConflicts() {
		fmt.Fprintf(w, "conflict: %s is claimed, and an identity may have issued it to another caller\n", docid.Escape(id))
	}
}

// changePrinter prints the changes of a dry run, as they come.
func changePrinter(p *printer) (print func(database string, c *idnodev1.CounterChange), end func()) {
	tw := tabwriter.NewWriter(p.w, 0, 8, 2, ' ', 0)
	first := true
	print = func(database string, c *idnodev1.CounterChange) {
		if p.json {
			p.object(c)
			return
		}
		if first {
			fmt.Fprintln(tw, "DATABASE\tKIND\tNAME\tBEFORE\tAFTER")
			first = false
		}
		before, after := fmt.Sprint(c.GetBefore()), fmt.Sprint(c.GetAfter())
		if c.GetCreated() {
			before = "-"
		}
		if c.GetKind() == idnodev1.CounterKind_COUNTER_KIND_CLAIM {
			after = "claimed"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", database, kindName(c.GetKind()), docid.Escape(c.GetName()), before, after)
	}
	return print, func() { _ = tw.Flush() }
}

func kindName(k idnodev1.CounterKind) counterfile.Kind {
	switch k {
	case idnodev1.CounterKind_COUNTER_KIND_IDENTITY:
		return counterfile.Identity
	case idnodev1.CounterKind_COUNTER_KIND_HILO:
		return counterfile.HiLo
	default:
		return counterfile.Claim
	}
}
