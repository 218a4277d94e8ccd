package service

import (
	"context"
	"encoding/hex"
	"unicode/utf8"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/exactproto"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Bounds of one merge: it must fit into one group of the log, and not hold it up.
const (
	// MaxMergeNames is how many names one call merges.
	MaxMergeNames = 1000
	// MaxMergeBytes is how many bytes these names have together.
	MaxMergeBytes = 36_000
	// MaxMergeTags is how many given tags one call has.
	MaxMergeTags = 100
	// maxRecordBytes is above what a group has room for.
	maxRecordBytes = 64 << 10
	// maxResumeBytes is how long the resume of an answer can be: a name and two
	// numbers.
	maxResumeBytes = docid.MaxNameBytes + 32
)

// IdentityValue is what an identity is raised to.
type IdentityValue struct {
	// Name may end with one pipe.
	Name  string
	Value int64
	// Deleted hides it if it is new.
	Deleted bool
}

// HiLoValue is what a HiLo counter is raised to.
type HiLoValue struct {
	Tag string
	// Max is the highest number reserved, Peak the highest that ever was, if that
	// is higher.
	Max, Peak int64
}

// MergeCountersRequest raises counters of a database and adds claims.
type MergeCountersRequest struct {
	Database   string
	Identities []IdentityValue
	HiLos      []HiLoValue
	// Claims are finished ids.
	Claims []string
	// DryRun changes nothing and says what would change.
	DryRun bool
}

// MergeChange is one change that a merge would make.
type MergeChange = fsm.MergeChange

// MergeCountersResponse says what changed, or would change.
type MergeCountersResponse struct {
	// Created, Raised and Claimed count what changed, Unchanged the rest.
	Created, Raised, Claimed, Unchanged int64
	// Conflicts are new claims of ids that an identity may have issued, folded.
	Conflicts []string
	// Changes are given for a dry run.
	Changes []MergeChange
	// LogIndex is 0 for a dry run.
	LogIndex uint64
}

// merges are the use cases of a restore.
type merges struct {
	*calls
	*proposer
	*reader
}

// MergeCounters raises counters to at least the given values and adds claims. It
// never lowers or removes anything, so it may be repeated.
func (m *merges) MergeCounters(ctx context.Context, req MergeCountersRequest) (MergeCountersResponse, error) {
	return call(ctx, m.calls, "MergeCounters", req, m.mergeCounters)
}

func (m *merges) mergeCounters(ctx context.Context, req MergeCountersRequest) (MergeCountersResponse, error) {
	database, merge, err := mergeOf(req)
	if err != nil {
		return MergeCountersResponse{}, err
	}
	// Counters that were raised stay so for good: a matter of the whole cluster.
	if err := m.authorize(ctx, rights.Cluster, "", ""); err != nil {
		return MergeCountersResponse{}, err
	}
	if req.DryRun {
		return m.previewMerge(ctx, database, merge)
	}
	var res MergeCountersResponse
	err = m.audited(ctx, audit.Record{Event: audit.EventRestore, Database: database, After: counted(merge)}, func() (change, error) {
		res, err = m.proposeMerge(ctx, database, merge)
		return change{index: res.LogIndex, after: map[string]int64{
			"created": res.Created, "raised": res.Raised, "claimed": res.Claimed, "unchanged": res.Unchanged,
		}}, err
	})
	return res, err
}

// counted is how much a merge has, for the audit log: its names are too many.
func counted(m *raftlogv1.Merge) map[string]int {
	return map[string]int{"identities": len(m.GetIdentities()), "hilos": len(m.GetHilos()), "claims": len(m.GetClaims())}
}

func (m *merges) proposeMerge(ctx context.Context, database string, merge *raftlogv1.Merge) (MergeCountersResponse, error) {
	result, err := m.propose(ctx, op.Envelope{Database: database}, merge, true)
	if err != nil {
		return MergeCountersResponse{}, err
	}
	merged := result.GetMerge()
	if merged == nil {
		return MergeCountersResponse{}, wrongResult("MergeCounters", result)
	}
	return mergeResponse(merged, nil, result.GetLogIndex()), nil
}

func (m *merges) previewMerge(ctx context.Context, database string, merge *raftlogv1.Merge) (MergeCountersResponse, error) {
	if _, err := m.settle(ctx, Linearizable); err != nil {
		return MergeCountersResponse{}, err
	}
	changes, merged := m.state.PreviewMerge(database, merge)
	return mergeResponse(merged, changes, 0), nil
}

func mergeResponse(m *raftlogv1.MergeResult, changes []fsm.MergeChange, index uint64) MergeCountersResponse {
	return MergeCountersResponse{
		Created: m.GetCreated(), Raised: m.GetRaised(), Claimed: m.GetClaimed(), Unchanged: m.GetUnchanged(),
		Conflicts: m.GetConflicts(), Changes: changes, LogIndex: index,
	}
}

// ImportSeriesRequest holds a record of a backup.
type ImportSeriesRequest struct {
	Database string
	// Record is an encoded raftlog.v1.SeriesImport.
	Record []byte
}

// ImportSeries puts a record of a backup into a series, and returns the index of the log
// entry. It may be repeated.
func (m *merges) ImportSeries(ctx context.Context, req ImportSeriesRequest) (uint64, error) {
	return call(ctx, m.calls, "ImportSeries", req, m.importSeries)
}

func (m *merges) importSeries(ctx context.Context, req ImportSeriesRequest) (index uint64, err error) {
	database, err := databaseKey(req.Database)
	if err != nil {
		return 0, err
	}
	if err := m.authorize(ctx, rights.Cluster, "", ""); err != nil {
		return 0, err
	}
	if len(req.Record) > maxRecordBytes {
		return 0, &Error{Code: ResourceExhausted, Reason: ReasonQuota, Field: "record", Message: "the record is too large for the log"}
	}
	record := &raftlogv1.SeriesImport{}
	if err := exactproto.Unmarshal(req.Record, record); err != nil {
		return 0, invalid(ReasonInvalidMerge, "record", "the record is none of a backup: %v", err)
	}
	name, numbers := imported(record)
	err = m.audited(ctx, audit.Record{Event: audit.EventRestore, Database: database, Name: name, After: map[string]int{"numbers": numbers}}, func() (change, error) {
		result, err := m.propose(ctx, op.Envelope{Database: database}, record, true)
		index = result.GetLogIndex()
		return change{index: index, after: map[string]int{"numbers": numbers}}, err
	})
	return index, err
}

// imported returns the series that a record is of, and how many numbers it has.
func imported(record *raftlogv1.SeriesImport) (name string, numbers int) {
	switch r := record.GetRecord().(type) {
	case *raftlogv1.SeriesImport_Series:
		return r.Series.GetName(), 0
	case *raftlogv1.SeriesImport_Numbers:
		return r.Numbers.GetName(), len(r.Numbers.GetNumbers())
	default:
		return record.GetLost().GetName(), 0
	}
}

// mergeOf checks and folds a request.
func mergeOf(req MergeCountersRequest) (string, *raftlogv1.Merge, error) {
	database, err := databaseKey(req.Database)
	if err != nil {
		return "", nil, err
	}
	merge, size := &raftlogv1.Merge{}, 0
	for _, i := range req.Identities {
		_, name, err := identityKey(req.Database, i.Name)
		if err != nil {
			return "", nil, err
		}
		size += len(name)
		merge.Identities = append(merge.Identities, &raftlogv1.MergeIdentity{Name: name, Last: i.Value, Hidden: i.Deleted})
	}
	for _, h := range req.HiLos {
		_, tag, err := hiloKey(req.Database, h.Tag)
		if err != nil {
			return "", nil, err
		}
		if h.Max < 0 || h.Peak < 0 {
			return "", nil, invalid(ReasonInvalidMax, "max", "the counter %.80q is negative", h.Tag)
		}
		size += len(tag)
		merge.Hilos = append(merge.Hilos, &raftlogv1.MergeHiLo{Tag: tag, Max: h.Max, Peak: h.Peak})
	}
	for _, id := range req.Claims {
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

// GivenTag is a node tag that was given.
type GivenTag struct {
	Tag string
	// ID is the node's Raft id, 32 hexadecimal digits.
	ID string
	// Etags is what no etag of the node is above, by database.
	Etags []EtagCeiling
}

// EtagCeiling is what no etag of a node is above in one database.
type EtagCeiling struct {
	Database string
	Ceiling  uint64
}

// MergeClusterRequest is what a backup says of its cluster.
type MergeClusterRequest struct {
	// Floor is where counters of names begin that are not known; it never falls.
	// Those of names that are known are raised to it.
	Floor int64
	// Resume is that of the answer before, with the same floor; empty at first.
	Resume string
	// Incomplete means that the other state may lack the newest changes: a new series begins
	// suspended from now on.
	Incomplete bool
	Tags       []GivenTag
	// ShareTags lets present members go on under tags that other nodes were given,
	// with etags above the given ones, and in other databases above EtagFloor.
	ShareTags bool
	EtagFloor uint64
}

// MergeClusterResponse says what is known now.
type MergeClusterResponse struct {
	Floor int64
	// Given counts tags that are newly known as given.
	Given int64
	// Shared are the tags of present members that other nodes were given too.
	Shared   []string
	LogIndex uint64
	// Resume, if set, says that not all known names were raised to the floor yet.
	Resume string
}

// MergeCluster takes over which tags were given in a backup's cluster, and where
// counters of unknown names begin. It may be repeated.
func (m *merges) MergeCluster(ctx context.Context, req MergeClusterRequest) (MergeClusterResponse, error) {
	return call(ctx, m.calls, "MergeCluster", req, m.mergeCluster)
}

func (m *merges) mergeCluster(ctx context.Context, req MergeClusterRequest) (MergeClusterResponse, error) {
	merge, err := mergeClusterOf(req)
	if err != nil {
		return MergeClusterResponse{}, err
	}
	if err := m.authorize(ctx, rights.Cluster, "", ""); err != nil {
		return MergeClusterResponse{}, err
	}
	var res MergeClusterResponse
	err = m.audited(ctx, audit.Record{Event: audit.EventRestore, After: req}, func() (change, error) {
		res, err = m.proposeMergeCluster(ctx, merge)
		return change{index: res.LogIndex, after: res}, err
	})
	return res, err
}

func (m *merges) proposeMergeCluster(ctx context.Context, merge *raftlogv1.MergeCluster) (MergeClusterResponse, error) {
	result, err := m.propose(ctx, op.Envelope{}, merge, true)
	if err != nil {
		return MergeClusterResponse{}, err
	}
	merged := result.GetMergeCluster()
	if merged == nil {
		return MergeClusterResponse{}, wrongResult("MergeCluster", result)
	}
	return MergeClusterResponse{
		Floor: merged.GetFloor(), Given: merged.GetGiven(), Shared: merged.GetShared(),
		LogIndex: result.GetLogIndex(), Resume: merged.GetResume(),
	}, nil
}

// mergeClusterOf checks and folds a request.
func mergeClusterOf(req MergeClusterRequest) (*raftlogv1.MergeCluster, error) {
	switch {
	case req.Floor < 0:
		return nil, invalid(ReasonInvalidFloor, "floor", "the floor %d is negative", req.Floor)
	case len(req.Resume) > maxResumeBytes || !utf8.ValidString(req.Resume):
		return nil, invalid(ReasonInvalidMerge, "resume", "it is not what an answer said")
	case len(req.Tags) > MaxMergeTags:
		return nil, invalid(ReasonInvalidMerge, "tags", "there are %d tags, at most %d are allowed", len(req.Tags), MaxMergeTags)
	}
	merge := &raftlogv1.MergeCluster{
		Floor: req.Floor, ShareTags: req.ShareTags, EtagFloor: req.EtagFloor, Resume: req.Resume, Incomplete: req.Incomplete,
	}
	for _, t := range req.Tags {
		if err := checkNodeTag(t.Tag); err != nil {
			return nil, err
		}
		id, err := hex.DecodeString(t.ID)
		if err != nil || len(id) != 16 {
			return nil, invalid(ReasonInvalidMerge, "tags", "the id of %s is not 32 hexadecimal digits", t.Tag)
		}
		given := &raftlogv1.GivenTag{Id: id, Tag: t.Tag}
		for _, e := range t.Etags {
			database, err := databaseKey(e.Database)
			if err != nil {
				return nil, err
			}
			given.Etags = append(given.Etags, &raftlogv1.EtagRaiseTo{Database: database, Ceiling: e.Ceiling})
		}
		merge.Tags = append(merge.Tags, given)
	}
	return merge, nil
}
