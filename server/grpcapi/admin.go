package grpcapi

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/server/service"
)

// adminServer adapts the use cases of backups and merges.
type adminServer struct {
	idnodev1.UnimplementedAdminServiceServer
	service *service.Service
}

func (s adminServer) Backup(req *idnodev1.BackupRequest, stream grpc.ServerStreamingServer[idnodev1.BackupResponse]) error {
	err := s.service.Backup(stream.Context(), consistencyOf(req.GetConsistency()), pieces{stream})
	if err != nil {
		return statusError(err)
	}
	return nil
}

// pieces sends what is written to it, cut into messages of pieceBytes at most.
type pieces struct {
	stream grpc.ServerStreamingServer[idnodev1.BackupResponse]
}

const (
	pieceBytes = 64 << 10
	// pieceTime is what the reader of a backup may take for one piece. A reader that stops
	// would keep others from their backups.
	pieceTime = 30 * time.Second
)

var errNotRead = errors.New("the reader of the backup took no piece for half a minute")

// Write implements io.Writer.
func (p pieces) Write(b []byte) (written int, err error) {
	for piece := range slices.Chunk(b, pieceBytes) {
		if err := p.send(piece); err != nil {
			return written, err
		}
		written += len(piece)
	}
	return written, nil
}

// send sends one message. The stream may hold on to what it sends. When it is told of an
// error the handler ends, which ends the stream and what waits to be sent on it.
func (p pieces) send(b []byte) error {
	sent, piece := make(chan error, 1), &idnodev1.BackupResponse{Data: bytes.Clone(b)}
	go func() { sent <- p.stream.Send(piece) }()
	timer := time.NewTimer(pieceTime)
	defer timer.Stop()
	select {
	case err := <-sent:
		return err
	case <-timer.C:
		return errNotRead
	}
}

func (s adminServer) MergeCounters(ctx context.Context, req *idnodev1.MergeCountersRequest) (*idnodev1.MergeCountersResponse, error) {
	merge := service.MergeCountersRequest{Database: req.GetDatabase(), Claims: req.GetClaims(), DryRun: req.GetDryRun()}
	for _, i := range req.GetIdentities() {
		merge.Identities = append(merge.Identities, service.IdentityValue{Name: i.GetName(), Value: i.GetValue(), Deleted: i.GetDeleted()})
	}
	for _, h := range req.GetHilos() {
		merge.HiLos = append(merge.HiLos, service.HiLoValue{Tag: h.GetTag(), Max: h.GetMax(), Peak: h.GetPeak()})
	}
	res, err := s.service.MergeCounters(ctx, merge)
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.MergeCountersResponse{
		Created: res.Created, Raised: res.Raised, Claimed: res.Claimed, Unchanged: res.Unchanged,
		Conflicts: res.Conflicts, Changes: changesOf(res.Changes), LogIndex: res.LogIndex,
	}, nil
}

func (s adminServer) ImportSeries(ctx context.Context, req *idnodev1.ImportSeriesRequest) (*idnodev1.ImportSeriesResponse, error) {
	index, err := s.service.ImportSeries(ctx, service.ImportSeriesRequest{Database: req.GetDatabase(), Record: req.GetRecord()})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.ImportSeriesResponse{LogIndex: index}, nil
}

func changesOf(changes []service.MergeChange) []*idnodev1.CounterChange {
	var out []*idnodev1.CounterChange
	for _, c := range changes {
		m := &idnodev1.CounterChange{Created: c.Created, Before: c.Before, After: c.After}
		switch {
		case c.Identity != "":
			m.Kind, m.Name = idnodev1.CounterKind_COUNTER_KIND_IDENTITY, c.Identity
		case c.HiLo != "":
			m.Kind, m.Name = idnodev1.CounterKind_COUNTER_KIND_HILO, c.HiLo
		default:
			m.Kind, m.Name = idnodev1.CounterKind_COUNTER_KIND_CLAIM, c.Claim
		}
		out = append(out, m)
	}
	return out
}

func (s adminServer) MergeCluster(ctx context.Context, req *idnodev1.MergeClusterRequest) (*idnodev1.MergeClusterResponse, error) {
	merge := service.MergeClusterRequest{
		Floor: req.GetFloor(), ShareTags: req.GetShareTags(), EtagFloor: req.GetEtagFloor(),
		Resume: req.GetResume(), Incomplete: req.GetIncomplete(),
	}
	for _, t := range req.GetTags() {
		given := service.GivenTag{Tag: t.GetTag(), ID: t.GetId()}
		for _, e := range t.GetEtags() {
			given.Etags = append(given.Etags, service.EtagCeiling{Database: e.GetDatabase(), Ceiling: e.GetCeiling()})
		}
		merge.Tags = append(merge.Tags, given)
	}
	res, err := s.service.MergeCluster(ctx, merge)
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.MergeClusterResponse{
		Floor: res.Floor, Given: res.Given, Shared: res.Shared, LogIndex: res.LogIndex, Resume: res.Resume,
	}, nil
}
