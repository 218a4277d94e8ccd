package service

import (
	"cmp"
	"context"
	"encoding/hex"
	"unicode/utf8"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/exactproto"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Bounds of a merge: it must fit into a group of the log, and not delay others.
const (
	// MaxMergeNames bounds the names of one call.
	MaxMergeNames = 1000
	// MaxMergeBytes bounds the sum of these names, in bytes.
	MaxMergeBytes = 36_000
	// MaxMergeTags bounds the given tags of one call.
	MaxMergeTags = 100
	// maxRecordBytes is above what a group has room for.
	maxRecordBytes = 64 << 10
	// maxResumeBytes is how long the resume of an answer can be: a name and two
	// numbers.
	maxResumeBytes = docid.MaxNameBytes + 32
)

type merges struct {
	base
}

// MergeCounters raises counters to at least the given values and adds claims. It
// never lowers or removes anything, so it may be repeated.
func (m *merges) MergeCounters(ctx context.Context, req *idnodev1.MergeCountersRequest) (*idnodev1.MergeCountersResponse, error) {
	return call(ctx, m.calls, "MergeCounters", req, m.mergeCounters)
}

func (m *merges) mergeCounters(ctx context.Context, req *idnodev1.MergeCountersRequest) (*idnodev1.MergeCountersResponse, error) {
	database, merge, err := mergeOf(req)
	if err != nil {
		return nil, err
	}
	// Counters that were raised stay so for good: a matter of the whole cluster.
	if err := m.authorize(ctx, rights.Cluster, "", ""); err != nil {
		return nil, err
	}
	if req.GetDryRun() {
		return m.previewMerge(ctx, database, merge)
	}
	record := audit.Record{Event: audit.EventRestore, Database: database, After: counted(merge)}
	result, err := m.proposeAudited(ctx, record, op.Envelope{Database: database}, merge, true, func(r *raftlogv1.Result) (before, after any) {
		res := r.GetMerge()
		return nil, map[string]int64{
			"created": res.GetCreated(), "raised": res.GetRaised(), "claimed": res.GetClaimed(), "unchanged": res.GetUnchanged(),
		}
	})
	return mergeResponse(result.GetMerge(), nil, result.GetLogIndex()), err
}

// counted is how much a merge has, for the audit log: its names are too many.
func counted(m *raftlogv1.Merge) map[string]int {
	return map[string]int{"identities": len(m.GetIdentities()), "hilos": len(m.GetHilos()), "claims": len(m.GetClaims())}
}

func (m *merges) previewMerge(ctx context.Context, database string, merge *raftlogv1.Merge) (*idnodev1.MergeCountersResponse, error) {
	if _, err := m.settle(ctx, idnodev1.Consistency_CONSISTENCY_LINEARIZABLE); err != nil {
		return nil, err
	}
	changes, merged := m.state.PreviewMerge(database, merge)
	return mergeResponse(merged, changes, 0), nil
}

func mergeResponse(m *raftlogv1.MergeResult, changes []fsm.MergeChange, index uint64) *idnodev1.MergeCountersResponse {
	res := &idnodev1.MergeCountersResponse{
		Created: m.GetCreated(), Raised: m.GetRaised(), Claimed: m.GetClaimed(), Unchanged: m.GetUnchanged(),
		Conflicts: m.GetConflicts(), LogIndex: index,
	}
	for _, c := range changes {
		change := &idnodev1.CounterChange{Created: c.Created, Before: c.Before, After: c.After}
		switch {
		case c.Identity != "":
			change.Kind, change.Name = idnodev1.CounterKind_COUNTER_KIND_IDENTITY, c.Identity
		case c.HiLo != "":
			change.Kind, change.Name = idnodev1.CounterKind_COUNTER_KIND_HILO, c.HiLo
		default:
			change.Kind, change.Name = idnodev1.CounterKind_COUNTER_KIND_CLAIM, c.Claim
		}
		res.Changes = append(res.Changes, change)
	}
	return res
}

// ImportSeries puts a record of a backup into a series. It may be repeated.
func (m *merges) ImportSeries(ctx context.Context, req *idnodev1.ImportSeriesRequest) (*idnodev1.ImportSeriesResponse, error) {
	return call(ctx, m.calls, "ImportSeries", req, m.importSeries)
}

func (m *merges) importSeries(ctx context.Context, req *idnodev1.ImportSeriesRequest) (*idnodev1.ImportSeriesResponse, error) {
	database, err := databaseKey(req.GetDatabase())
	if err != nil {
		return nil, err
	}
	if err := m.authorize(ctx, rights.Cluster, "", ""); err != nil {
		return nil, err
	}
	if len(req.GetRecord()) > maxRecordBytes {
		return nil, &Error{Code: ResourceExhausted, Reason: ReasonQuota, Field: "record", Message: "the record is too large for the log"}
	}
	record := &raftlogv1.SeriesImport{}
	if err := exactproto.Unmarshal(req.GetRecord(), record); err != nil {
		return nil, invalid(ReasonInvalidMerge, "record", "the record is not one of a backup: %v", err)
	}
	name, numbers := imported(record)
	has := map[string]int{"numbers": numbers}
	result, err := m.proposeAudited(ctx, audit.Record{Event: audit.EventRestore, Database: database, Name: name, After: has},
		op.Envelope{Database: database}, record, true, thenIs(has))
	return &idnodev1.ImportSeriesResponse{LogIndex: result.GetLogIndex()}, err
}

// imported returns the series that a record is of, and how many numbers it has.
func imported(record *raftlogv1.SeriesImport) (name string, numbers int) {
	return cmp.Or(record.GetSeries().GetName(), record.GetNumbers().GetName()), len(record.GetNumbers().GetNumbers())
}

func mergeOf(req *idnodev1.MergeCountersRequest) (string, *raftlogv1.Merge, error) {
	database, err := databaseKey(req.GetDatabase())
	if err != nil {
		return "", nil, err
	}
	merge, size := &raftlogv1.Merge{}, 0
	for _, i := range req.GetIdentities() {
		name, err := nameKey(i.GetName())
		if err != nil {
			return "", nil, err
		}
		size += len(name)
		merge.Identities = append(merge.Identities, &raftlogv1.MergeIdentity{Name: name, Last: i.GetValue(), Hidden: i.GetDeleted()})
	}
	for _, h := range req.GetHilos() {
		tag, err := tagKey(h.GetTag())
		if err != nil {
			return "", nil, err
		}
		if h.GetMax() < 0 || h.GetPeak() < 0 {
			return "", nil, invalid(ReasonInvalidMax, "max", "the counter %.80q is negative", h.GetTag())
		}
		size += len(tag)
		merge.Hilos = append(merge.Hilos, &raftlogv1.MergeHiLo{Tag: tag, Max: h.GetMax(), Peak: h.GetPeak()})
	}
	for _, id := range req.GetClaims() {
		if err := checkClaimedID(id); err != nil {
			return "", nil, err
		}
		id = docid.Fold(id)
		size += len(id)
		merge.Claims = append(merge.Claims, id)
	}
	if n := len(merge.Identities) + len(merge.Hilos) + len(merge.Claims); n > MaxMergeNames || size > MaxMergeBytes {
		return "", nil, invalid(ReasonInvalidMerge, "identities", "%d names of %d bytes are merged at once, at most %d of %d bytes may be",
			n, size, MaxMergeNames, MaxMergeBytes)
	}
	return database, merge, nil
}

// MergeCluster takes over which tags were given in a backup's cluster, and where
// counters of unknown names begin. It may be repeated.
func (m *merges) MergeCluster(ctx context.Context, req *idnodev1.MergeClusterRequest) (*idnodev1.MergeClusterResponse, error) {
	return call(ctx, m.calls, "MergeCluster", req, m.mergeCluster)
}

func (m *merges) mergeCluster(ctx context.Context, req *idnodev1.MergeClusterRequest) (*idnodev1.MergeClusterResponse, error) {
	merge, err := mergeClusterOf(req)
	if err != nil {
		return nil, err
	}
	if err := m.authorize(ctx, rights.Cluster, "", ""); err != nil {
		return nil, err
	}
	record := audit.Record{Event: audit.EventRestore, After: recorded(req)}
	result, err := m.proposeAudited(ctx, record, op.Envelope{}, merge, true, func(r *raftlogv1.Result) (before, after any) {
		merged := r.GetMergeCluster()
		return nil, recordedMerge{merged.GetFloor(), merged.GetGiven(), merged.GetShared(), r.GetLogIndex(), merged.GetResume()}
	})
	merged := result.GetMergeCluster()
	return &idnodev1.MergeClusterResponse{
		Floor: merged.GetFloor(), Given: merged.GetGiven(), Shared: merged.GetShared(),
		LogIndex: result.GetLogIndex(), Resume: merged.GetResume(),
	}, err
}

// recordedMerge and recordedRequest are what the audit log has of a cluster's merge.
type recordedMerge struct {
	Floor, Given int64
	Shared       []string
	LogIndex     uint64
	Resume       string
}

type recordedRequest struct {
	Floor      int64
	Resume     string
	Incomplete bool
	Tags       []recordedTag
	ShareTags  bool
	EtagFloor  uint64
}

type recordedTag struct {
	Tag, ID string
	Etags   []recordedCeiling
}

type recordedCeiling struct {
	Database string
	Ceiling  uint64
}

func recorded(req *idnodev1.MergeClusterRequest) recordedRequest {
	r := recordedRequest{
		Floor: req.GetFloor(), Resume: req.GetResume(), Incomplete: req.GetIncomplete(),
		ShareTags: req.GetShareTags(), EtagFloor: req.GetEtagFloor(),
	}
	for _, t := range req.GetTags() {
		tag := recordedTag{Tag: t.GetTag(), ID: t.GetId()}
		for _, e := range t.GetEtags() {
			tag.Etags = append(tag.Etags, recordedCeiling{e.GetDatabase(), e.GetCeiling()})
		}
		r.Tags = append(r.Tags, tag)
	}
	return r
}

func mergeClusterOf(req *idnodev1.MergeClusterRequest) (*raftlogv1.MergeCluster, error) {
	switch {
	case req.GetFloor() < 0:
		return nil, invalid(ReasonInvalidFloor, "floor", "the floor %d is negative", req.GetFloor())
	case len(req.GetResume()) > maxResumeBytes || !utf8.ValidString(req.GetResume()):
		return nil, invalid(ReasonInvalidMerge, "resume", "it is not what an answer said")
	case len(req.GetTags()) > MaxMergeTags:
		return nil, invalid(ReasonInvalidMerge, "tags", "there are %d tags, at most %d are allowed", len(req.GetTags()), MaxMergeTags)
	}
	merge := &raftlogv1.MergeCluster{
		Floor: req.GetFloor(), ShareTags: req.GetShareTags(), EtagFloor: req.GetEtagFloor(), Resume: req.GetResume(),
		Incomplete: req.GetIncomplete(),
	}
	for _, t := range req.GetTags() {
		if err := checkNodeTag(t.GetTag()); err != nil {
			return nil, err
		}
		id, err := hex.DecodeString(t.GetId())
		if err != nil || len(id) != 16 {
			return nil, invalid(ReasonInvalidMerge, "tags", "the id of %s is not 32 hexadecimal digits", t.GetTag())
		}
		given := &raftlogv1.GivenTag{Id: id, Tag: t.GetTag()}
		for _, e := range t.GetEtags() {
			database, err := databaseKey(e.GetDatabase())
			if err != nil {
				return nil, err
			}
			given.Etags = append(given.Etags, &raftlogv1.EtagCeiling{Database: database, Floor: e.GetCeiling()})
		}
		merge.Tags = append(merge.Tags, given)
	}
	return merge, nil
}
