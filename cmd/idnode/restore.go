package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/transfer/counterfile"
)

// restoreFlags say how a backup is restored.
type restoreFlags struct {
	flags     *pflag.FlagSet
	skip      int64
	floor     string
	shareTags bool
	settings  bool
	sure      confirmation
}

func (a *app) restoreCommand() *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use:     "restore FILE",
		GroupID: groupData,
		Short:   "Merge a backup into a running cluster; nothing goes back",
		Long: `Raises every counter of the cluster to what the backup has, and adds its claims.
Nothing is lowered or removed, so restoring twice is restoring once, and callers
may go on meanwhile. Node tags that were given stay given. Remembered request ids
are not restored.

Ids that another cluster gave after the backup was taken are not in it. So unless
the backup is of this very cluster, say how far its counters may have come since:

  --skip-ahead N   every counter goes on N above the backup's; counters of names
                   that the backup does not know go on above N, also those that
                   the cluster has used already
  --floor FILE     a CSV (database,kind,name,value) with values that are taken,
                   such as the highest ones in the applications' own database

With both, the higher value counts. A new cluster must not use tags that the
backup's cluster gave: start it under others (--tag D), or, if the old nodes are
gone for good, restore with --share-tags, before it gives server-side ids.`,
		Example: `  idnode restore today.backup --skip-ahead 1000000
  idnode restore today.backup                         into the cluster it was taken of`,
		Args: cobra.ExactArgs(1),
	}
	f.register(cmd.Flags())
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		if f.skip < 0 {
			return usagef("--skip-ahead must not be negative")
		}
		f.sure.of(cmd)
		r := &restore{restoreFlags: f, client: s, progress: newProgress(a.stderr)}
		return r.run(ctx, args[0])
	})
}

func (f *restoreFlags) register(flags *pflag.FlagSet) {
	f.flags = flags
	flags.Int64Var(&f.skip, "skip-ahead", 0, "how many values each counter may have given since the backup was taken; 0 says none")
	flags.StringVar(&f.floor, "floor", "", "CSV (database,kind,name,value) of values that are taken")
	flags.BoolVar(&f.shareTags, "share-tags", false, "members go on under tags of the backup's nodes, which are gone; needs --skip-ahead")
	flags.BoolVar(&f.settings, "settings", false, "take over the backup's settings too")
	f.sure.register(flags)
}

// restore is one restore.
type restore struct {
	restoreFlags
	client   *clusterClient
	progress *progress
	file     *backupFile
	// floors are the counters of --floor.
	floors []counterfile.Counter
	status *idnodev1.GetStatusResponse
}

func (r *restore) run(ctx context.Context, path string) (err error) {
	if r.file, err = openBackup(path); err != nil {
		return err
	}
	if err := r.readFloors(); err != nil {
		return err
	}
	if r.status, err = clusterOf(ctx, r.client); err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	if err := r.sure.ask(r.question()); err != nil {
		return err
	}
	cluster, err := r.mergeCluster(ctx)
	if err != nil {
		return err
	}
	if err := r.mergeSettings(ctx); err != nil {
		return err
	}
	total, err := r.mergeCounters(ctx)
	if err != nil {
		return err
	}
	total.LogIndex = max(total.GetLogIndex(), cluster.GetLogIndex())
	r.client.out.result(total, func(w io.Writer) { r.print(w, cluster, total) })
	return nil
}

// clusterOf asks the first node that answers for its status.
func clusterOf(ctx context.Context, s *clusterClient) (res *idnodev1.GetStatusResponse, err error) {
	err = s.ask(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
		res, err = idnodev1.NewClusterServiceClient(conn).GetStatus(ctx, &idnodev1.GetStatusRequest{})
		return err
	})
	return res, err
}

func (r *restore) readFloors() error {
	if r.floor == "" {
		return nil
	}
	file, err := os.Open(r.floor)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // It was only read.
	err = counterfile.ReadCSV(file, func(c counterfile.Counter) error {
		r.floors = append(r.floors, c)
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", r.floor, err)
	}
	return nil
}

// sameCluster says whether the backup is of the cluster that it is restored into.
func (r *restore) sameCluster() bool { return r.file.info.GetClusterId() == r.status.GetClusterId() }

// check refuses what could go back.
func (r *restore) check() error {
	said := r.flags.Changed("skip-ahead")
	switch {
	case !r.sameCluster() && !said && r.floor == "":
		return usagef("the backup is of another cluster (%s), whose later ids are not in it: say with --skip-ahead N or --floor FILE how far it may have come; see 'idnode restore --help'",
			r.file.info.GetClusterId())
	case r.shareTags && !said:
		return usagef("--share-tags needs --skip-ahead: how many server-side ids the other nodes may have given since")
	}
	return nil
}

// question says what is about to happen.
func (r *restore) question() string {
	c := r.file.info.GetCounts()
	text := fmt.Sprintf("Merges %d identities, %d HiLo counters and %d claims of %s into cluster %s. Counters only rise, and that cannot be undone.",
		c.GetIdentities(), c.GetHilos(), c.GetClaims(), r.file.path, r.status.GetClusterId())
	if r.skip > 0 {
		text += fmt.Sprintf(" Each counter goes on %d above the backup's.", r.skip)
	}
	return text
}

// mergeCluster takes over tags and floor: first, so that from then on no name is
// begun too low.
func (r *restore) mergeCluster(ctx context.Context) (*idnodev1.MergeClusterResponse, error) {
	total := &idnodev1.MergeClusterResponse{}
	requests := r.clusterRequests()
	for len(requests) > 0 {
		req := requests[0]
		requests = requests[1:]
		var res *idnodev1.MergeClusterResponse
		err := r.client.insist(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
			res, err = idnodev1.NewAdminServiceClient(conn).MergeCluster(ctx, req)
			return err
		})
		if err != nil {
			return nil, err
		}
		if res.GetResume() != "" {
			requests = append(requests, &idnodev1.MergeClusterRequest{Floor: req.GetFloor(), Resume: res.GetResume()})
		}
		total.Floor, total.LogIndex = res.GetFloor(), res.GetLogIndex()
		total.Given += res.GetGiven()
		for _, tag := range res.GetShared() {
			if !strings.Contains(" "+strings.Join(total.GetShared(), " ")+" ", " "+tag+" ") {
				total.Shared = append(total.Shared, tag)
			}
		}
	}
	return total, nil
}

// clusterRequests are the requests for floor and tags. The first one has the floor
// and names all tags, so that one which is taken is refused before anything was changed; more
// follow for etags that do not fit.
func (r *restore) clusterRequests() []*idnodev1.MergeClusterRequest {
	floor := r.file.floor.GetNames()
	if r.flags.Changed("skip-ahead") {
		floor = plus(floor, r.skip)
	}
	next := func() *idnodev1.MergeClusterRequest {
		return &idnodev1.MergeClusterRequest{ShareTags: r.shareTags, EtagFloor: uint64(r.skip)}
	}
	requests := []*idnodev1.MergeClusterRequest{next()}
	requests[0].Floor = floor
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
	for _, m := range r.file.members {
		add(&idnodev1.GivenTag{Tag: m.GetTag(), Id: hex.EncodeToString(m.GetId())}, tagBytes)
	}
	if !r.shareTags {
		return requests
	}
	for _, m := range r.file.members {
		for _, e := range r.file.etags[string(m.GetId())].GetCeilings() {
			add(&idnodev1.GivenTag{Tag: m.GetTag(), Id: hex.EncodeToString(m.GetId()), Etags: []*idnodev1.EtagCeiling{
				{Database: e.GetDatabase(), Ceiling: r.pastEtags(e)},
			}}, tagBytes+len(e.GetDatabase()))
		}
	}
	return requests
}

// A request holds so many tags, each of about so many bytes.
const maxTags, tagBytes = 100, 64

// pastEtags is above every etag that the node may have used.
func (r *restore) pastEtags(e *raftlogv1.EtagCeiling) uint64 {
	known := max(e.GetCeiling(), e.GetLast(), e.GetFloor())
	return uint64(plus(int64(min(known, math.MaxInt64)), r.skip))
}

func (r *restore) mergeSettings(ctx context.Context) error {
	if !r.settings {
		return nil
	}
	for _, setting := range r.file.settings {
		req := &idnodev1.UpdateSettingRequest{Key: setting.GetKey(), Value: setting.GetValue()}
		err := r.client.insist(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) error {
			_, err := idnodev1.NewClusterServiceClient(conn).UpdateSetting(ctx, req)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// mergeCounters merges the file's counters and then those of --floor. Claims come
// first: an identity that is raised over a claim has not issued it.
func (r *restore) mergeCounters(ctx context.Context) (*idnodev1.MergeCountersResponse, error) {
	m := newMerger(r.client, r.progress)
	m.skip = r.skip
	for _, claims := range []bool{true, false} {
		err := r.file.counters(func(c counterfile.Counter) error {
			if claims != (c.Kind == counterfile.Claim) {
				return nil
			}
			return m.add(ctx, c)
		})
		if err == nil {
			err = m.flush(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
	m.skip = 0
	return m.total, m.addAll(ctx, r.floors)
}

// addAll merges counters, claims first.
func (m *merger) addAll(ctx context.Context, all []counterfile.Counter) error {
	for _, claims := range []bool{true, false} {
		for _, c := range all {
			if claims != (c.Kind == counterfile.Claim) {
				continue
			}
			if err := m.add(ctx, c); err != nil {
				return err
			}
		}
		if err := m.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *restore) print(w io.Writer, cluster *idnodev1.MergeClusterResponse, total *idnodev1.MergeCountersResponse) {
	fields(w, [][2]string{
		{"restored", fmt.Sprintf("%s of log index %d into cluster %s", r.file.path, r.file.info.GetLogIndex(), r.status.GetClusterId())},
		{"tags", fmt.Sprintf("%d newly known as given; shared: %s", cluster.GetGiven(), orNone(cluster.GetShared()))},
		{"floor", fmt.Sprintf("unknown names begin above %d", cluster.GetFloor())},
	})
	printMerged(w, total, false)
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
