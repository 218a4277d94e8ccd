package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/idnodev1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/transfer"
	"github.com/idnode/idnode/transfer/counterfile"
)

var errCut = errors.New("cut")

// cutConn fails one call, before it is sent or with its answer lost; and counts them.
type cutConn struct {
	grpc.ClientConnInterface
	calls, at int
	lost      bool
}

func (c *cutConn) Invoke(ctx context.Context, method string, req, res any, opts ...grpc.CallOption) error {
	c.calls++
	cut := c.calls == c.at
	if cut && !c.lost {
		return errCut
	}
	err := c.ClientConnInterface.Invoke(ctx, method, req, res, opts...)
	if cut {
		return errCut
	}
	return err
}

// pool defines a pool, or fails.
func (r *rig) pool(t *testing.T, name, layout string, window time.Duration) {
	t.Helper()
	req := &idnodev1.DefinePoolRequest{Name: name, LayoutName: layout, Window: durationpb.New(window)}
	if _, err := idnodev1.NewSnowflakeServiceClient(r.conn).DefinePool(t.Context(), req); err != nil {
		t.Fatal(err)
	}
}

// acquire leases a worker; the holder's clock is the cluster's.
func (r *rig) acquire(t *testing.T, pool string) error {
	t.Helper()
	req := &idnodev1.AcquireWorkerRequest{
		Pool: pool, Holder: "new", Window: durationpb.New(10 * time.Second), Now: timestamppb.New(time.Unix(1_700_000_000, 0)),
	}
	_, err := idnodev1.NewSnowflakeServiceClient(r.conn).AcquireWorker(t.Context(), req)
	return err
}

// series defines a series and takes numbers of it. With lost its first key's number is another key's.
func (r *rig) series(t *testing.T, name, format string, numbers int, lost bool) {
	t.Helper()
	client := idnodev1.NewSeriesServiceClient(r.conn)
	take := &idnodev1.TakeNumbersRequest{Series: name}
	for i := range numbers {
		take.Keys = append(take.Keys, fmt.Sprint("key ", i))
	}
	define := &idnodev1.DefineSeriesRequest{Name: name, Definition: &idnodev1.SeriesDefinition{
		Format: format, OnRelease: idnodev1.SeriesOnRelease_SERIES_ON_RELEASE_REUSE_LOWEST,
	}}
	_, err := client.DefineSeries(t.Context(), define)
	if err == nil {
		_, err = client.TakeNumbers(t.Context(), take)
	}
	if err == nil && lost {
		_, err = client.ReleaseNumbers(t.Context(), &idnodev1.ReleaseNumbersRequest{
			Series: name, Keys: []*idnodev1.NumberOf{{Key: "key 0", Number: 1}},
		})
		if err == nil {
			_, err = client.TakeNumbers(t.Context(), &idnodev1.TakeNumbersRequest{Series: name, Keys: []string{"another"}})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// lostCluster is a backup with some of everything that a restore merges.
func lostCluster(t *testing.T) *transfer.Backup {
	t.Helper()
	from := serve(t, Config{}, nil)
	merge := transfer.Merger{Conn: from.conn}
	_, err := merge.Merge(t.Context(), []counterfile.Counter{
		{Database: "default", Kind: counterfile.Identity, Name: "users", Value: 7},
		{Database: "shop", Kind: counterfile.HiLo, Name: "orders", Value: 64},
		{Database: "shop", Kind: counterfile.Claim, Name: "a/1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	from.pool(t, "aaa", "twitter", 10*time.Minute)
	from.pool(t, "mmm", "javascript", time.Minute)
	from.pool(t, "zzz", "twitter", time.Minute)
	from.series(t, "bills", "B-{number}", 3, true)
	from.series(t, "differs", "D-{number}", 2, false)
	from.series(t, "long", "L-{number}", 130, false)
	path := filepath.Join(t.TempDir(), "lost.backup")
	if _, err := transfer.SaveBackup(path, from.backupInto(t)); err != nil {
		t.Fatal(err)
	}
	b, err := transfer.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// newCluster has given ids before the restore, and has two pools and a series that differ.
func newCluster(t *testing.T) *rig {
	t.Helper()
	to := serve(t, Config{}, nil)
	to.pool(t, "aaa", "twitter", 5*time.Minute)
	to.pool(t, "mmm", "sonyflake-bits", time.Hour)
	to.pool(t, "zzz", "twitter", time.Minute)
	to.series(t, "differs", "OTHER-{number}", 2, false)
	for _, pool := range []string{"aaa", "mmm", "zzz"} {
		if err := to.acquire(t, pool); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func restoreOf(b *transfer.Backup, to grpc.ClientConnInterface) *transfer.Restore {
	return &transfer.Restore{
		Backup: b, Conn: to, SkipAhead: 10, ShareTags: true,
		Floors: []counterfile.Counter{{Database: "default", Kind: counterfile.Identity, Name: "users", Value: 5000}},
	}
}

// contents are the records of a cluster's state, without the random tokens of leases.
func (r *rig) contents(t *testing.T) (all []string) {
	t.Helper()
	snapshot := r.State.Snapshot()
	defer snapshot.Close()
	if err := snapshot.EachRecord(func(m *raftlogv1.SnapshotRecord) error {
		if l := m.GetWorkerLease(); l != nil {
			l.Token = 0
		}
		text, err := prototext.MarshalOptions{}.Marshal(m)
		all = append(all, strings.ReplaceAll(string(text), "  ", " ")) // Its spaces are random.
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestWhatALimitHasNoRoomForChangesNothing: an import of several calls is judged whole, and to the last name.
func TestWhatALimitHasNoRoomForChangesNothing(t *testing.T) {
	var counters []counterfile.Counter
	add := func(database string, kind counterfile.CounterKind, n int) {
		for i := range n {
			counters = append(counters, counterfile.Counter{Database: database, Kind: kind, Name: fmt.Sprintf("name%04d", i)})
		}
	}
	add("big", counterfile.Identity, 700)
	add("big", counterfile.HiLo, 600)
	add("big", counterfile.Claim, 500)
	for i := range 900 {
		add(fmt.Sprint("small", i), counterfile.Identity, 1)
	}
	counters = append(counters, counters...) // Twice, which counts once.
	for key, need := range map[string]int64{
		"max-databases": 901, "max-identities": 1600, "max-hilos": 600, "max-claims": 500, "max-name-bytes-total": 2700 * 8,
		"max-names-per-database": 1800, "max-name-bytes-per-database": 1800 * 8,
	} {
		to := serve(t, Config{}, nil)
		limit := func(value int64) {
			t.Helper()
			if _, err := to.cluster.UpdateSetting(t.Context(), &idnodev1.UpdateSettingRequest{Key: key, Value: proto.Int64(value)}); err != nil {
				t.Fatal(err)
			}
		}
		limit(need - 1)
		_, before := to.State.Hash()
		_, err := (&transfer.Merger{Conn: to.conn}).Merge(t.Context(), counters)
		if _, after := to.State.Hash(); reasonOf(err) != apierror.ReasonQuota || before != after || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v, changed %t", key, err, before != after)
		}
		limit(need)
		if _, err := (&transfer.Merger{Conn: to.conn}).Merge(t.Context(), counters); err != nil {
			t.Errorf("%s of what is needed: %v", key, err)
		}
	}
}

// TestARestoreIsJudgedBefore it changes anything, its tags included.
func TestARestoreIsJudgedBefore(t *testing.T) {
	b, to := lostCluster(t), newCluster(t)
	for key, value := range map[string]int64{"max-identities": 0, "max-hilos": 0} {
		if _, err := to.cluster.UpdateSetting(t.Context(), &idnodev1.UpdateSettingRequest{Key: key, Value: proto.Int64(value)}); err != nil {
			t.Fatal(err)
		}
	}
	before := to.contents(t)
	if _, err := restoreOf(b, to.conn).Run(t.Context()); reasonOf(err) != apierror.ReasonQuota {
		t.Error(err)
	}
	if diff := cmp.Diff(before, to.contents(t)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// TestWhatDiffersDoesNotStopARestore: the floors are merged, every pool's leases end, and what stays another is named.
func TestWhatDiffersDoesNotStopARestore(t *testing.T) {
	to := newCluster(t)
	done, err := restoreOf(lostCluster(t), to.conn).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, x := range done.NotMerged {
		named = append(named, x.Kind+" "+x.Name+": "+x.Reason.Error())
	}
	slices.Sort(named)
	for i, want := range []string{
		"pool aaa: its leases ended, and its window here stays 5m0s, not the backup's 10m0s",
		"pool mmm: its leases ended, and its layout here is sonyflake-bits, not the backup's javascript: ",
		"series differs: ",
	} {
		if len(named) != 3 || !strings.HasPrefix(named[i], want) {
			t.Errorf("%q, want %q", named, want)
		}
	}
	if done.Pools != 3 {
		t.Errorf("the leases of %d pools ended", done.Pools)
	}
	next, err := to.ids.NextIdentity(t.Context(), &idnodev1.NextIdentityRequest{Name: "users"})
	if err != nil || next.GetBlocks()[0].GetFirst() != 5001 {
		t.Errorf("the next identity: %v, %v", next, err)
	}
	for _, pool := range []string{"aaa", "mmm", "zzz"} {
		if err := to.acquire(t, pool); err == nil || !strings.Contains(err.Error(), "all workers are in use, or may be") {
			t.Errorf("a worker of %s: %v", pool, err)
		}
	}
}

// TestARestoreThatIsInterruptedEndsTheSame, at each of its calls, before the call or with its answer lost; and
// so does one that is repeated.
func TestARestoreThatIsInterruptedEndsTheSame(t *testing.T) {
	b := lostCluster(t)
	run := func(at int, lost bool) (calls int, contents []string) {
		to := newCluster(t)
		conn := &cutConn{ClientConnInterface: to.conn, at: at, lost: lost}
		_, err := restoreOf(b, conn).Run(t.Context())
		if calls = conn.calls; errors.Is(err, errCut) {
			_, err = restoreOf(b, conn).Run(t.Context())
		} else if at > 0 {
			t.Errorf("the cut at %d was not seen: %v", at, err)
		}
		if err != nil {
			t.Fatal(err)
		}
		return calls, to.contents(t)
	}
	calls, want := run(0, false)
	if calls < 14 {
		t.Fatalf("only %d calls", calls)
	}
	for at := 1; at <= calls; at++ {
		for _, lost := range []bool{false, true} {
			if _, got := run(at, lost); !slices.Equal(got, want) {
				t.Errorf("cut at call %d, its answer lost %t (-want +got):\n%s", at, lost, cmp.Diff(want, got))
			}
		}
	}
}
