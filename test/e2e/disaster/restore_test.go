package disaster

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// skipAhead is far more than what a test gives between a backup and a disaster.
const skipAhead = 1_000_000

// rounds is how often a test loses a cluster; IDNODE_E2E_DISASTERS names more.
func rounds(t testing.TB, few int) int {
	n, err := strconv.Atoi(os.Getenv("IDNODE_E2E_DISASTERS"))
	if err != nil {
		return few
	}
	t.Logf("%d rounds", n)
	return n
}

// TestF24 loses a whole cluster at a random moment after a backup that was taken
// under load, and restores it into a new one: under tags that were never given, and
// under those of the lost nodes.
func TestF24(t *testing.T) {
	tier.Long(t)
	for round := range rounds(t, 1) {
		for _, tags := range []string{"DEF", "ABC"} {
			t.Run(tags+strconv.Itoa(round), func(t *testing.T) { loseAll(t, tags) })
		}
	}
}

func loseAll(t *testing.T, tags string) {
	ledger := harness.NewLedger(t)
	file := filepath.Join(t.TempDir(), "x.backup")
	old := harness.StartCluster(t, harness.Config{Direct: true})
	l := startLoad(t, ledger, "before the loss", old.Nodes...)
	request := &idnodev1.RequestId{Id: "the same"}
	if err := l.next(t.Context(), old.Nodes[0], "invoices", 1, request, "a request id, before the loss"); err != nil {
		t.Fatal(err)
	}
	l.thick(t, 20+rand.Int64N(100))
	had := maxima(ledger)
	claimed := l.claimed()
	must(t, with(endpoints(old.Nodes[rand.IntN(3)]), "backup", file)...)
	l.thick(t, 20+rand.Int64N(100))
	l.stop()
	for _, n := range old.Nodes {
		n.Process.Kill()
		if err := os.RemoveAll(n.DataDir); err != nil {
			t.Fatal(err)
		}
	}

	next := harness.NewCluster(t, harness.Config{Direct: true})
	for i, n := range next.Nodes {
		n.Tag = string(tags[i])
		n.DataDir += "-new"
	}
	for _, n := range next.Nodes {
		n.Start(t)
	}
	next.WaitReady(t)
	// A caller was too early; the old cluster may have given these as well.
	must(t, with(endpoints(next.Nodes...), "next", "early|")...)
	had["identity early"] = 0
	restore := with(endpoints(next.Nodes...), "restore", file, "--yes")
	refused(t, 2, restore...)
	restore = with(restore, "--skip-ahead", strconv.Itoa(skipAhead))
	if tags == "ABC" {
		why := refused(t, 1, restore...)
		if !strings.Contains(why, "NODE_TAG_TAKEN") {
			t.Errorf("refused with %s", why)
		}
		restore = with(restore, "--share-tags")
	}
	must(t, restore...)
	once := export(t, next, "once.csv")
	must(t, restore...)
	if twice := export(t, next, "twice.csv"); !slices.EqualFunc(once, twice, slices.Equal) {
		t.Errorf("a second restore changed something: %d counters, then %d", len(once), len(twice))
	}
	mustHave(t, once, had)
	stillClaimed(t, next.Nodes[0], claimed)

	// The old request id is a new one here.
	after := startLoad(t, ledger, "after the restore", next.Nodes...)
	if err := after.next(t.Context(), next.Nodes[0], "invoices", 1, request, "the same request id, after the loss"); err != nil {
		t.Fatal(err)
	}
	after.thick(t, 20)
	// Restored once more, under load and while the leader is lost.
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		leader := next.Leader(t)
		leader.Process.Kill()
		leader.Start(t)
	}()
	must(t, restore...)
	<-killed
	after.thick(t, 20)
	// Nodes that start again do not fall back either.
	for _, n := range next.Nodes {
		n.Process.Kill()
		n.Start(t)
		n.WaitReady(t)
	}
	after.thick(t, 20)
	after.stop()
	next.Agree(t)
}

// maxima are the greatest numbers given so far, by counter as a CSV has it.
func maxima(ledger *harness.Ledger) map[string]int64 {
	had := map[string]int64{}
	for _, name := range names {
		had["identity "+name] = ledger.Max("identity " + name)
		had["hilo "+name] = ledger.Max("hilo " + name)
	}
	return had
}

// export returns the lines of an export of all databases.
func export(t *testing.T, c *harness.Cluster, name string) [][]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, with(endpoints(c.Nodes...), "export", path)...)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// mustHave checks that every counter is past what was given before the backup.
func mustHave(t *testing.T, lines [][]string, had map[string]int64) {
	t.Helper()
	found := map[string]int64{}
	for _, l := range lines {
		found[l[1]+" "+l[2]], _ = strconv.ParseInt(l[3], 10, 64)
	}
	for counter, value := range had {
		if found[counter] < value+skipAhead {
			t.Errorf("%s is %d, and %d were given before the backup", counter, found[counter], value)
		}
	}
}

// TestRestoreIntoTheSameCluster raises nothing that is not behind, while callers
// go on.
func TestRestoreIntoTheSameCluster(t *testing.T) {
	ledger := harness.NewLedger(t)
	file := filepath.Join(t.TempDir(), "x.backup")
	c := harness.StartCluster(t, harness.Config{Direct: true})
	l := startLoad(t, ledger, "under the restore", c.Nodes...)
	l.thick(t, 50)
	must(t, with(endpoints(c.Nodes[1]), "backup", file)...)
	l.thick(t, 50)
	for range 3 {
		must(t, with(endpoints(c.Nodes[rand.IntN(3)]), "restore", file, "--yes")...)
		l.thick(t, 20)
	}
	l.stop()
	c.Agree(t)
}

// TestAnImportTakesNoNumberBack: a range of which the file says that a number is
// used does not come back.
func TestAnImportTakesNoNumberBack(t *testing.T) {
	const used = 40
	file := filepath.Join(t.TempDir(), "used.csv")
	if err := os.WriteFile(file, []byte("database,kind,name,value\n,hilo,orders,"+strconv.Itoa(used)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := harness.StartCluster(t, harness.Config{Direct: true})
	ids := c.Nodes[0].Ids
	next := func() *idnodev1.NextRangeResponse {
		r, err := ids.NextRange(t.Context(), &idnodev1.NextRangeRequest{Tag: "orders"})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	next()
	r := next()
	must(t, with(endpoints(c.Nodes...), "import", file, "--yes")...)
	back, err := ids.ReturnRange(t.Context(), &idnodev1.ReturnRangeRequest{
		Tag: "orders", Low: r.GetLow(), High: r.GetHigh(), Last: proto.Int64(r.GetLow() - 1), Token: r.GetToken(),
	})
	if err != nil || back.GetReturned() {
		t.Errorf("the return of %d to %d: %v %v", r.GetLow(), r.GetHigh(), back, err)
	}
	if again := next(); again.GetLow() <= used {
		t.Errorf("%d to %d was given, and %d is used", again.GetLow(), again.GetHigh(), used)
	}
}

// TestABackupIsOneCut: two identities are taken by turns, and in each backup, from
// any node and at any moment, the first is as high as the second, or one ahead.
func TestABackupIsOneCut(t *testing.T) {
	dir := t.TempDir()
	c := harness.StartCluster(t, harness.Config{Direct: true})
	l := startLoad(t, harness.NewLedger(t), "beside", c.Nodes...)
	ctx, cancel := context.WithCancel(t.Context())
	var failed error
	l.pairs(ctx, c.Nodes[0], &failed)
	for i := range 10 {
		file := filepath.Join(dir, strconv.Itoa(i))
		before := l.ledger.Max("identity second")
		must(t, with(endpoints(c.Nodes[i%3]), "backup", file)...)
		csvFile := file + ".csv"
		must(t, "export", csvFile, "--from", file)
		first, second := pairIn(t, csvFile)
		if first-second != 0 && first-second != 1 || second < before {
			t.Errorf("a backup with %d and %d, after %d", first, second, before)
		}
	}
	cancel()
	l.stop()
	if failed != nil {
		t.Fatal(failed)
	}
}

func pairIn(t *testing.T, path string) (first, second int64) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimSpace(line), ",")
		switch f[2] {
		case "first":
			first, _ = strconv.ParseInt(f[3], 10, 64)
		case "second":
			second, _ = strconv.ParseInt(f[3], 10, 64)
		}
	}
	return first, second
}

// TestDamagedBackupsAreRefused, whatever was asked for, before anything is done.
func TestDamagedBackupsAreRefused(t *testing.T) {
	dir := t.TempDir()
	c := harness.StartCluster(t, harness.Config{Size: 1, Direct: true})
	l := startLoad(t, harness.NewLedger(t), "once", c.Nodes...)
	l.thick(t, 50)
	l.stop()
	file := filepath.Join(dir, "x.backup")
	must(t, with(endpoints(c.Nodes[0]), "backup", file)...)
	var info idnodev1.BackupInfo
	if err := json.Unmarshal([]byte(must(t, "backup", "inspect", file, "-o", "json")),
		&struct{ ClusterID *string }{&info.ClusterId}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, before := stateOf(t, c.Nodes[0])
	for range 20 {
		damaged := slices.Clone(whole)
		if rand.IntN(4) == 0 {
			damaged = damaged[:rand.IntN(len(damaged))]
		} else {
			damaged[rand.IntN(len(damaged))] ^= 1 << rand.IntN(8)
		}
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, 1, "backup", "inspect", file)
		refused(t, 1, with(endpoints(c.Nodes[0]), "restore", file, "--yes")...)
		refused(t, 1, "export", filepath.Join(dir, "x.csv"), "--from", file)
	}
	if _, after := stateOf(t, c.Nodes[0]); before != after {
		t.Error("a damaged backup changed the state")
	}
}

func stateOf(t *testing.T, n *harness.Node) (index, hash uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	s, err := n.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return s.GetAppliedIndex(), s.GetStateHash()
}
