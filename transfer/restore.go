package transfer

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/client/snowflake"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/transfer/counterfile"
)

// Restore merges a backup into a running cluster. Nothing is lowered or removed:
// a restore is idempotent.
type Restore struct {
	Backup *Backup
	// Conn is used as Merger.Conn.
	Conn grpc.ClientConnInterface
	// SkipAhead bounds the values that each counter may have issued since the backup; not negative.
	SkipAhead int64
	// Floors are further values that count as used.
	Floors []counterfile.Counter
	// ShareTags lets members continue under tags of the backup's nodes, which are gone.
	ShareTags bool
	// Settings restores the backup's settings too.
	Settings bool
	// Merged, if set, is called now and then with the number of names merged.
	Merged func(names int64)
}

// Restored is the result of a restore.
type Restored struct {
	Cluster  *idnodev1.MergeClusterResponse
	Counters *idnodev1.MergeCountersResponse
	// Pools counts the pools whose leases ended.
	Pools int
	// Merged names the parts that were merged to their end.
	Merged []string
	// NotMerged are the series and pools that were not merged completely. Everything else was merged.
	NotMerged []NotMerged
}

// NotMerged is a series or a pool that was not merged exactly as it is in the backup.
type NotMerged struct {
	// Kind is "series" or "pool".
	Kind, Database, Name string
	// Reason is the cause. A part may have been merged before.
	Reason error
}

// Run restores. After an error some parts of the backup were merged, and another may have been merged in part.
// Another Run completes the restore.
func (r *Restore) Run(ctx context.Context) (done Restored, err error) {
	m := &Merger{Conn: r.Conn, Merged: r.Merged, skip: r.SkipAhead}
	if !r.Settings { // Else the limits are the backup's, which come with the tags.
		if err := r.judge(ctx); err != nil {
			return done, err
		}
	}
	for _, part := range []struct {
		what string
		run  func() error
	}{
		{"tags and floor", func() (err error) {
			if done.Cluster, err = r.mergeCluster(ctx); err == nil && r.Settings {
				err = r.judge(ctx)
			}
			return err
		}},
		{"counters and claims", func() error { return m.merge(ctx, r.Backup.Counters) }},
		// Counters come before parts that the cluster may refuse, and after the backup's claims:
		// see Merger.merge.
		{"further values", func() (err error) { m.skip = 0; done.Counters, err = m.mergeList(ctx, r.Floors); return err }},
		{"series", func() error { return r.importSeries(ctx, &done) }},
		{"pools", func() error { return r.definePools(ctx, &done) }},
	} {
		if err := part.run(); err != nil {
			return done, err
		}
		done.Merged = append(done.Merged, part.what)
	}
	done.Counters.LogIndex = max(done.Counters.GetLogIndex(), done.Cluster.GetLogIndex())
	return done, nil
}

// judge fails if the cluster has no room for the counters. Nothing is changed.
func (r *Restore) judge(ctx context.Context) error {
	both, err := r.Backup.keysIn(r.Floors)
	if err != nil {
		return err
	}
	return judge(ctx, r.Conn, func(each counterfile.Each) error {
		if err := r.Backup.Counters(each); err != nil {
			return err
		}
		return once(r.Floors, both)(each)
	})
}

// mergeCluster merges tags and floor: first, so that from then on no name begins too low.
// Settings follow as soon as no tag is refused: the etags of many databases need theirs.
func (r *Restore) mergeCluster(ctx context.Context) (*idnodev1.MergeClusterResponse, error) {
	total := &idnodev1.MergeClusterResponse{}
	requests := r.clusterRequests()
	for len(requests) > 0 {
		req := requests[0]
		requests = requests[1:]
		res, err := idnodev1.NewAdminServiceClient(r.Conn).MergeCluster(ctx, req)
		if err != nil {
			return nil, err
		}
		if total.GetLogIndex() == 0 {
			if err := r.mergeSettings(ctx); err != nil {
				return nil, err
			}
		}
		if res.GetResume() != "" {
			requests = append(requests, &idnodev1.MergeClusterRequest{Floor: req.GetFloor(), Resume: res.GetResume()})
		}
		total.Floor, total.LogIndex = res.GetFloor(), res.GetLogIndex()
		total.Given += res.GetGiven()
		for _, tag := range res.GetShared() {
			if !slices.Contains(total.GetShared(), tag) {
				total.Shared = append(total.Shared, tag)
			}
		}
	}
	return total, nil
}

// clusterRequests are the requests for floor and tags. The first has the floor and all tags, so that a tag that is taken
// is refused before anything was changed; more follow for etags that do not fit.
func (r *Restore) clusterRequests() []*idnodev1.MergeClusterRequest {
	next := func() *idnodev1.MergeClusterRequest {
		return &idnodev1.MergeClusterRequest{
			ShareTags: r.ShareTags, EtagFloor: uint64(r.SkipAhead),
			Incomplete: r.SkipAhead > 0 || len(r.Floors) > 0,
		}
	}
	requests := []*idnodev1.MergeClusterRequest{next()}
	requests[0].Floor = plus(r.Backup.Info.GetFloor(), r.SkipAhead)
	size := 0
	add := func(tag *idnodev1.GivenTag, bytes int) {
		last := requests[len(requests)-1]
		if len(last.GetTags()) >= maxTags || size+bytes > mergeBytes {
			last, size = next(), 0
			requests = append(requests, last)
		}
		last.Tags = append(last.Tags, tag)
		size += bytes
	}
	for _, m := range r.Backup.Info.GetMembers() {
		add(&idnodev1.GivenTag{Tag: m.GetTag(), Id: m.GetId()}, tagBytes)
	}
	if !r.ShareTags {
		return requests
	}
	for _, m := range r.Backup.Info.GetMembers() {
		for _, e := range r.Backup.etags[m.GetId()] {
			tags, bytes := requests[len(requests)-1].GetTags(), tagBytes+len(e.GetDatabase())
			if tags[len(tags)-1].GetTag() != m.GetTag() || size+bytes > mergeBytes {
				add(&idnodev1.GivenTag{Tag: m.GetTag(), Id: m.GetId()}, tagBytes)
				tags = requests[len(requests)-1].GetTags()
			}
			// The state merges all etags of a tag at once.
			last := tags[len(tags)-1]
			last.Etags = append(last.Etags, &idnodev1.EtagCeiling{Database: e.GetDatabase(), Ceiling: r.pastEtags(e)})
			size += bytes
		}
	}
	return requests
}

// A request has at most maxTags tags, of about tagBytes each. The etag of a database takes as much, and its name.
const maxTags, tagBytes = 100, 64

// pastEtags is above every etag that the node may have used.
func (r *Restore) pastEtags(e *raftlogv1.EtagCeiling) uint64 {
	known := max(e.GetCeiling(), e.GetLast(), e.GetFloor())
	return uint64(plus(int64(min(known, math.MaxInt64)), r.SkipAhead))
}

func (r *Restore) mergeSettings(ctx context.Context) error {
	if !r.Settings {
		return nil
	}
	for _, setting := range r.Backup.Info.GetSettings() {
		req := &idnodev1.UpdateSettingRequest{Key: setting.GetKey(), Value: &setting.Value}
		if _, err := idnodev1.NewClusterServiceClient(r.Conn).UpdateSetting(ctx, req); err != nil {
			return err
		}
	}
	return nil
}

// definePools begins the pools of the backup. All leases end, since the newest are not known, also of a
// pool that the cluster has with another layout or window.
func (r *Restore) definePools(ctx context.Context, done *Restored) error {
	for _, p := range r.Backup.Info.GetPools() {
		req := &idnodev1.DefinePoolRequest{
			Database: p.GetDatabase(), Name: p.GetName(), Layout: p.GetLayout(), Window: p.GetWindow(), ForgetLeases: true,
		}
		res, err := idnodev1.NewSnowflakeServiceClient(r.Conn).DefinePool(ctx, req)
		if err != nil && !refusal(err) {
			return fmt.Errorf("pool %.200q of database %q: %w", p.GetName(), req.GetDatabase(), err)
		}
		if err == nil {
			done.Pools++
			err = otherPool(req, res)
		}
		if err != nil {
			done.NotMerged = append(done.NotMerged, NotMerged{"pool", req.GetDatabase(), req.GetName(), err})
		}
	}
	return nil
}

// otherPool describes the properties in which a pool of the cluster differs from the backup's.
func otherPool(backup *idnodev1.DefinePoolRequest, here *idnodev1.DefinePoolResponse) error {
	switch was, is := backup.GetWindow().AsDuration(), here.GetWindow().AsDuration(); {
	case !proto.Equal(backup.GetLayout(), here.GetLayout()):
		return fmt.Errorf("its leases ended, and its layout here is %s, not the backup's %s: ids of the two may be equal",
			LayoutText(here.GetLayout()), LayoutText(backup.GetLayout()))
	case was != is:
		return fmt.Errorf("its leases ended, and its window here stays %s, not the backup's %s", is, was)
	}
	return nil
}

// LayoutText returns the name of a ready-made layout, or a description of another layout.
func LayoutText(l *idnodev1.PoolLayout) string {
	is := snowflake.Layout{
		Epoch: l.GetEpoch().AsTime().UnixMilli(), Unit: l.GetUnit().AsDuration().Milliseconds(),
		TimeBits: int(l.GetTimeBits()), WorkerBits: int(l.GetWorkerBits()), SequenceBits: int(l.GetSequenceBits()),
	}
	for name, known := range snowflake.Layouts {
		if is == known {
			return name
		}
	}
	return fmt.Sprintf("%d bits of %s since %s, %d of the worker, %d of the sequence", l.GetTimeBits(), l.GetUnit().AsDuration(),
		l.GetEpoch().AsTime().Format(time.RFC3339), l.GetWorkerBits(), l.GetSequenceBits())
}
