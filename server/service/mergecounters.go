package service

import (
	"cmp"
	"context"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

// maxGrowth is more than a cluster can have of anything.
const maxGrowth = 1 << 50

// databaseMerge is the part of a merge for one database: names are folded.
type databaseMerge struct {
	database string
	*raftlogv1.Merge
	already fsm.Growth
}

// MergeCounters raises counters to at least the given values and adds claims. It
// never lowers or removes anything, so it may be repeated.
func (m *merges) MergeCounters(ctx context.Context, req *idnodev1.MergeCountersRequest) (*idnodev1.MergeCountersResponse, error) {
	return admission.Call(ctx, m.Control, "MergeCounters", req, m.mergeCounters)
}

func (m *merges) mergeCounters(ctx context.Context, req *idnodev1.MergeCountersRequest) (*idnodev1.MergeCountersResponse, error) {
	parts, err := mergesOf(req.GetDatabases())
	if err != nil {
		return nil, err
	}
	already, err := growthOf(req.GetAlready())
	if err != nil {
		return nil, err
	}
	// A raise of counters is permanent, and so concerns the whole cluster.
	if err := m.Authorize(ctx, rights.Cluster, "", ""); err != nil {
		return nil, err
	}
	if req.GetDryRun() {
		return m.previewMerge(ctx, parts, req.GetAlready() != nil, already)
	}
	record := audit.Record{Event: audit.EventRestore, After: counted(parts)}
	if len(parts) == 1 {
		record.Database = parts[0].database
	}
	total := &idnodev1.MergeCountersResponse{}
	err = m.Audited(ctx, record, func() (done admission.Change, err error) {
		err = m.proposeAsCaller(ctx, false, true, func(principal *string) error {
			total.Reset()
			return m.mergeAll(ctx, parts, principal, total)
		})
		done.Index, done.Partly = total.GetLogIndex(), total.GetLogIndex() > 0
		done.After = map[string]int64{
			"created": total.GetCreated(), "raised": total.GetRaised(), "claimed": total.GetClaimed(), "unchanged": total.GetUnchanged(),
		}
		return done, err
	})
	if err != nil {
		return nil, err
	}
	return total, nil
}

// mergeAll proposes all parts at once, each as an operation of its own, and adds up their results. It returns the
// first error; other parts may have been merged.
func (m *merges) mergeAll(ctx context.Context, parts []databaseMerge, principal *string,
	total *idnodev1.MergeCountersResponse,
) error {
	operations, errs := make([][]byte, len(parts)), make([]error, len(parts))
	for i, p := range parts {
		operations[i], errs[i] = op.Envelope{Database: p.database, Principal: principal}.Encode(p.Merge)
	}
	for i, answer := range m.proposeAll(ctx, operations, errs) {
		if errs[i] == nil {
			errs[i] = add(total, parts[i], answer)
		}
	}
	return internalCodec(cmp.Or(errs...))
}

// add adds the result of a merge.
func add(total *idnodev1.MergeCountersResponse, p databaseMerge, answer []byte) error {
	result, err := op.DecodeResult(answer)
	if err == nil && !isAnswerTo(p.Merge, result) {
		err = wrongResult(p.Merge, result)
	}
	if err != nil {
		return err
	}
	total.LogIndex = max(total.GetLogIndex(), result.GetLogIndex())
	addResult(total, p.database, result.GetMerge())
	return nil
}

func addResult(total *idnodev1.MergeCountersResponse, database string, r *raftlogv1.MergeResult) {
	total.Created += r.GetCreated()
	total.Raised += r.GetRaised()
	total.Claimed += r.GetClaimed()
	total.Unchanged += r.GetUnchanged()
	for _, id := range r.GetConflicts() {
		total.Conflicts = append(total.Conflicts, &idnodev1.MergeConflict{Database: database, Id: id})
	}
}

// counted is how much a merge has, for the audit log: its names are too many.
func counted(parts []databaseMerge) map[string]int {
	count := map[string]int{"databases": len(parts)}
	for _, p := range parts {
		count["identities"] += len(p.GetIdentities())
		count["hilos"] += len(p.GetHilos())
		count["claims"] += len(p.GetClaims())
	}
	return count
}

// previewMerge refuses a merge for which there is no room, counting the given growth of earlier merges. If
// judging is set, it does not report changes.
func (m *merges) previewMerge(ctx context.Context, parts []databaseMerge, judging bool, all fsm.Growth,
) (*idnodev1.MergeCountersResponse, error) {
	if _, err := m.settle(ctx, idnodev1.Consistency_CONSISTENCY_LINEARIZABLE); err != nil {
		return nil, err
	}
	total := &idnodev1.MergeCountersResponse{}
	for _, p := range parts {
		g, refused := m.state.JudgeMerge(p.database, p.Merge, p.already, all)
		if refused != nil {
			return nil, refusalError(refused)
		}
		all = all.Plus(g)
		total.Growth = append(total.Growth, &idnodev1.MergeGrowth{
			Databases: g.Databases, Identities: g.Identities, Hilos: g.HiLos, Claims: g.Claims, Bytes: g.Bytes,
		})
		if judging {
			continue
		}
		changes, result := m.state.PreviewMerge(p.database, p.Merge)
		addResult(total, p.database, result)
		for _, c := range changes {
			total.Changes = append(total.Changes, changeOf(p.database, c))
		}
	}
	return total, nil
}

func changeOf(database string, c fsm.MergeChange) *idnodev1.CounterChange {
	change := &idnodev1.CounterChange{Database: database, IsNew: c.Created, Before: c.Before, After: c.After}
	switch {
	case c.Identity != "":
		change.Kind, change.Name = idnodev1.CounterKind_COUNTER_KIND_IDENTITY, c.Identity
	case c.HiLo != "":
		change.Kind, change.Name = idnodev1.CounterKind_COUNTER_KIND_HILO, c.HiLo
	default:
		change.Kind, change.Name = idnodev1.CounterKind_COUNTER_KIND_CLAIM, c.Claim
	}
	return change
}

// mergesOf checks and folds the parts of a merge.
func mergesOf(databases []*idnodev1.DatabaseMerge) ([]databaseMerge, error) {
	if len(databases) > MaxMergeNames {
		return nil, apierror.Invalid(apierror.ReasonInvalidMerge, "databases", "there are %d databases, at most %d are allowed", len(databases),
			MaxMergeNames)
	}
	parts, seen, names, size := make([]databaseMerge, 0, len(databases)), make(map[string]bool, len(databases)), 0, 0
	for _, d := range databases {
		p, bytes, err := mergeOf(d)
		if err != nil {
			return nil, err
		}
		if seen[p.database] {
			return nil, apierror.Invalid(apierror.ReasonInvalidMerge, "databases", "the database %.80q is listed twice", p.database)
		}
		seen[p.database] = true
		names, size = names+len(p.GetIdentities())+len(p.GetHilos())+len(p.GetClaims()), size+bytes
		parts = append(parts, p)
	}
	if names > MaxMergeNames || size > MaxMergeBytes {
		return nil, apierror.Invalid(apierror.ReasonInvalidMerge, "databases",
			"%d names of %d bytes are merged at once, at most %d of %d bytes may be",
			names, size, MaxMergeNames, MaxMergeBytes)
	}
	return parts, nil
}

// mergeOf checks and folds the part of a merge for one database, and returns the bytes of its names and of the
// database's name.
func mergeOf(req *idnodev1.DatabaseMerge) (p databaseMerge, size int, err error) {
	merge := &raftlogv1.Merge{}
	p.Merge = merge
	if p.database, err = databaseKey(req.GetDatabase()); err != nil {
		return p, 0, err
	}
	if p.already, err = growthOf(req.GetAlready()); err != nil {
		return p, 0, err
	}
	size = len(p.database)
	for _, i := range req.GetIdentities() {
		name, err := nameKey(i.GetName())
		if err != nil {
			return p, 0, err
		}
		size += len(name)
		merge.Identities = append(merge.Identities, &raftlogv1.MergeIdentity{Name: name, Last: i.GetValue(), Hidden: i.GetDeleted()})
	}
	for _, h := range req.GetHilos() {
		tag, err := tagKey(h.GetTag())
		if err != nil {
			return p, 0, err
		}
		if h.GetMax() < 0 || h.GetPeak() < 0 {
			return p, 0, apierror.Invalid(apierror.ReasonInvalidMax, "max", "the counter %.80q is negative", h.GetTag())
		}
		size += len(tag)
		merge.Hilos = append(merge.Hilos, &raftlogv1.MergeHiLo{Tag: tag, Max: h.GetMax(), Peak: h.GetPeak()})
	}
	for _, id := range req.GetClaims() {
		if err := checkClaimedID(id); err != nil {
			return p, 0, err
		}
		id = docid.Fold(id)
		size += len(id)
		merge.Claims = append(merge.Claims, id)
	}
	return p, size, nil
}

// growthOf checks the growth that earlier dry runs returned.
func growthOf(g *idnodev1.MergeGrowth) (fsm.Growth, error) {
	all := []int64{g.GetDatabases(), g.GetIdentities(), g.GetHilos(), g.GetClaims(), g.GetBytes()}
	for _, n := range all {
		if n < 0 || n > maxGrowth {
			return fsm.Growth{}, apierror.Invalid(apierror.ReasonInvalidMerge, "already", "%d is not the growth that a dry run returned", n)
		}
	}
	return fsm.Growth{Databases: all[0], Identities: all[1], HiLos: all[2], Claims: all[3], Bytes: all[4]}, nil
}
