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
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/exactproto"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

// Bounds of a merge: it must fit into a group of the log, and not delay others.
const (
	// MaxMergeNames bounds the names of one call.
	MaxMergeNames = 1000
	// MaxMergeBytes bounds the bytes of these names, and of the databases' names.
	MaxMergeBytes = 36_000
	// MaxMergeTags bounds the given tags of one call.
	MaxMergeTags = 100
	// maxRecordBytes is more than a group may have.
	maxRecordBytes = 64 << 10
	// maxResumeBytes is the greatest length of an answer's resume: a name and two
	// numbers.
	maxResumeBytes = docid.MaxNameBytes + 32
)

type merges struct {
	*base
}

// ImportSeries puts a record of a backup into a series. It may be repeated.
func (m *merges) ImportSeries(ctx context.Context, req *idnodev1.ImportSeriesRequest) (*idnodev1.ImportSeriesResponse, error) {
	return admission.Call(ctx, m.Control, "ImportSeries", req, m.importSeries)
}

func (m *merges) importSeries(ctx context.Context, req *idnodev1.ImportSeriesRequest) (*idnodev1.ImportSeriesResponse, error) {
	database, err := databaseKey(req.GetDatabase())
	if err != nil {
		return nil, err
	}
	if err := m.Authorize(ctx, rights.Cluster, "", ""); err != nil {
		return nil, err
	}
	if len(req.GetRecord()) > maxRecordBytes {
		return nil, &apierror.Error{
			Code: apierror.CodeResourceExhausted, Reason: apierror.ReasonQuota, Field: "record",
			Message: "the record is too large for the log",
		}
	}
	record := &raftlogv1.SeriesImport{}
	if err := exactproto.Unmarshal(req.GetRecord(), record); err != nil {
		return nil, apierror.Invalid(apierror.ReasonInvalidMerge, "record", "the record is not that of a backup: %v", err)
	}
	name, numbers := imported(record)
	has := map[string]int{"numbers": numbers}
	result, err := m.proposeAudited(ctx, audit.Record{Event: audit.EventRestore, Database: database, Name: name, After: has},
		op.Envelope{Database: database}, record, true, thenIs(has))
	return &idnodev1.ImportSeriesResponse{LogIndex: result.GetLogIndex(), More: result.GetValue() > 0}, err
}

// imported returns the series of a record, and its count of numbers.
func imported(record *raftlogv1.SeriesImport) (name string, numbers int) {
	return cmp.Or(record.GetSeries().GetName(), record.GetNumbers().GetName()), len(record.GetNumbers().GetNumbers())
}

// MergeCluster merges the tags of a backup's cluster, and the floor at which counters of unknown
// names begin. It may be repeated.
func (m *merges) MergeCluster(ctx context.Context, req *idnodev1.MergeClusterRequest) (*idnodev1.MergeClusterResponse, error) {
	return admission.Call(ctx, m.Control, "MergeCluster", req, m.mergeCluster)
}

func (m *merges) mergeCluster(ctx context.Context, req *idnodev1.MergeClusterRequest) (*idnodev1.MergeClusterResponse, error) {
	merge, err := mergeClusterOf(req)
	if err != nil {
		return nil, err
	}
	if err := m.Authorize(ctx, rights.Cluster, "", ""); err != nil {
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

// recordedMerge and recordedRequest are the audit log's record of a cluster's merge.
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
		return nil, apierror.Invalid(apierror.ReasonInvalidFloor, "floor", "the floor %d is negative", req.GetFloor())
	case len(req.GetResume()) > maxResumeBytes || !utf8.ValidString(req.GetResume()):
		return nil, apierror.Invalid(apierror.ReasonInvalidMerge, "resume", "it is not the resume position of an answer")
	case len(req.GetTags()) > MaxMergeTags:
		return nil, apierror.Invalid(apierror.ReasonInvalidMerge, "tags", "there are %d tags, at most %d are allowed", len(req.GetTags()),
			MaxMergeTags)
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
			return nil, apierror.Invalid(apierror.ReasonInvalidMerge, "tags", "the id of %s is not 32 hexadecimal digits", t.GetTag())
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
