package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// verbs is an operator who uses the verbs of the Makefile on containers, and a caller beside.
type verbs struct {
	*harness.Compose
	ledger *harness.Ledger
	stalls *harness.Stalls
	// used are the verbs that were used.
	used map[string]bool
}

// missed is what a caller saw: how many numbers it got, how many tries failed, and the longest
// time without a number but for what the machine stood still.
type missed struct {
	got, failed int
	longest     time.Duration
}

func (m missed) String() string {
	return fmt.Sprintf("%d numbers, %d tries failed, at most %s without a number", m.got, m.failed, m.longest.Round(time.Millisecond))
}

// call takes numbers until ctx ends, one try after the other, at the nodes in turn.
func (v *verbs) call(ctx context.Context) (m missed) {
	last := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		node := v.Containers[i%len(v.Containers)].Node
		try, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		r, err := node.Ids.NextIdentity(try, &idnodev1.NextIdentityRequest{Name: "orders"})
		cancel()
		if err != nil {
			m.failed++
			harness.Pause(ctx, 20*time.Millisecond)
			continue
		}
		for _, b := range r.GetBlocks() {
			v.ledger.Record("orders", "the caller", b.GetFirst(), b.GetLast())
		}
		m.got++
		m.longest, last = max(m.longest, time.Since(last)-v.stalls.Between(last, time.Now())), time.Now()
		harness.Pause(ctx, 5*time.Millisecond)
	}
	return m
}

// does uses a verb, which must succeed, beside the caller. Then all nodes serve.
func (v *verbs) does(t *testing.T, args ...string) (out string, saw missed) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var calling sync.WaitGroup
	calling.Go(func() { saw = v.call(ctx) })
	out, err := v.Make(t, append(args, "YES=yes")...)
	cancel()
	calling.Wait()
	v.used[args[0]] = true
	if err != nil {
		t.Fatalf("make %v: %v\n%s", args, err, out)
	}
	v.Look(t)
	for _, n := range v.Containers {
		n.WaitHealthy(t)
	}
	t.Logf("make %v: a caller got %s", args, saw)
	return out, saw
}

// rolling is longer than what one node's stop may cost a caller, and shorter than a start of all.
const rolling = 8 * time.Second

// changes uses a verb that gives new containers to so many nodes, which stop one after the other.
func (v *verbs) changes(t *testing.T, count int, args ...string) {
	t.Helper()
	before, begin := v.ids(), time.Now()
	_, saw := v.does(t, args...)
	changed := 0
	for i, id := range v.ids() {
		if id != before[i] {
			changed++
		}
	}
	if changed != count {
		t.Errorf("make %v changed %d containers, want %d", args, changed, count)
	}
	if down := v.MostDown(t, begin); down > 1 || saw.longest > rolling {
		t.Errorf("make %v: %d containers were down at once, and a caller got %s", args, down, saw)
	}
}

func (v *verbs) ids() (ids []string) {
	for _, n := range v.Containers {
		ids = append(ids, n.ID)
	}
	return ids
}

// members returns the tags of the members, in the order of the containers.
func (v *verbs) members(t *testing.T) string {
	t.Helper()
	var tags []string
	for _, n := range v.Containers {
		s, err := n.Status(t)
		if err != nil {
			t.Fatal(err)
		}
		n.Tag = s.GetSelf().GetTag()
		tags = append(tags, n.Tag)
	}
	return strings.Join(tags, " ")
}

func (v *verbs) wantMembers(t *testing.T, want string) {
	t.Helper()
	if got := v.members(t); got != want {
		t.Errorf("the members are %s, want %s", got, want)
	}
}

// TestComposeVerbs does with containers what docs/operate/containers.md names:
// changes, an upgrade, a node whose volume is lost, then two, and then all of them.
func TestComposeVerbs(t *testing.T) {
	tier.Long(t)
	needPrograms(t, "make")
	v := &verbs{harness.StartCompose(t), harness.NewLedger(t), harness.MeasureStalls(t), map[string]bool{"clean": true}}
	v.changes(t, 3, "up") // Each node gets the cluster's id.
	v.withoutCertificate(t)
	v.changes(t, 0, "up")
	next := v.LoadImage(t, "next")
	v.changes(t, 3, "upgrade", "IMAGE="+next)
	v.refuses(t, "upgrade", "IMAGE=localhost:1/nowhere:v1")
	v.refuses(t, "upgrade", "IMAGE="+v.LoadProgram(t, "LICENSE", "broken"))
	v.does(t, "upgrade", "IMAGE="+next)
	renew := exec.Command(harness.Binary(t), "certs", v.Certs, "--node", "B", "--host", "idnode-b", "--overwrite")
	if out, err := renew.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", renew, err, out)
	}
	v.changes(t, 1, "up")

	v.Containers[2].Lose(t)
	v.refuses(t, "replace", "NODE=c")
	v.changes(t, 1, "replace", "NODE=c")
	v.wantMembers(t, "A B D")
	v.changes(t, 0, "up")

	backups := filepath.Join(t.TempDir(), "of today")
	v.changes(t, 0, "backup", "TO="+backups)
	files, err := filepath.Glob(filepath.Join(backups, "*.backup"))
	if err != nil || len(files) != 1 {
		t.Fatalf("backups: %v, %v", files, err)
	}
	v.changes(t, 0, "restore", "FROM="+files[0])

	v.refuses(t, "recover", "NODE=a", "SKIP=100000", "YES=yes")
	v.refuses(t, "restore", "FROM="+files[0], "ANEW=yes", "SKIP=1000000", "YES=yes")
	v.Containers[1].Lose(t)
	v.Containers[2].Lose(t)
	harness.Eventually(t, time.Minute, "a knows that it has no quorum", func(context.Context) error {
		if _, _, code := v.Containers[0].Exec(t, "health", "--timeout", "2s"); code == 0 {
			return errors.New("it is healthy")
		}
		return nil
	})
	v.refuses(t, "recover", "NODE=a", "SKIP=100000")
	v.refuses(t, "recover", "NODE=a", "YES=yes")
	v.refuses(t, "recover", "NODE=b", "SKIP=100000", "YES=yes") // Its data are lost, which is no dead end.
	v.interrupted(t, "recovered", "recover", "NODE=a", "SKIP=100000")
	v.does(t, "recover", "NODE=a", "SKIP=100000")
	v.wantMembers(t, "A E F")
	v.changes(t, 0, "up")
	v.skipped(t, 100_000)

	for _, n := range v.Containers {
		n.Lose(t)
	}
	v.refuses(t, "restore", "FROM="+files[0], "ANEW=yes", "SKIP=1e6", "YES=yes")
	v.interrupted(t, "idnode-c serves", "restore", "FROM="+files[0], "ANEW=yes", "SKIP=1000000")
	v.does(t, "restore", "FROM="+files[0], "ANEW=yes", "SKIP=1000000")
	v.wantMembers(t, "A B C")
	v.skipped(t, 1_000_000)
	v.changes(t, 0, "up")
	v.keepsData(t)
	for _, command := range regexp.MustCompile("`make ([a-z]+)").FindAllStringSubmatch(operated(t, "containers"), -1) {
		if !v.used[command[1]] {
			t.Errorf("containers.md has %s, which is not tried", command[0])
		}
	}
}

// withoutCertificate tries what would stop nodes that serve, with a certificate that the nodes do not take.
func (v *verbs) withoutCertificate(t *testing.T) {
	t.Helper()
	own, others := filepath.Join(v.Certs, "client."), filepath.Join(t.TempDir(), "client.")
	if out, err := exec.Command(harness.Binary(t), "certs", filepath.Dir(others), "--client", "client").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	swap := func() {
		for _, kind := range []string{"crt", "key"} {
			kept := own + "kept"
			if err := errors.Join(os.Rename(own+kind, kept), os.Rename(others+kind, own+kind), os.Rename(kept, others+kind)); err != nil {
				t.Fatal(err)
			}
		}
	}
	swap()
	v.refuses(t, "up")
	swap()
}

// refuses uses a verb that must fail, and never stops two nodes.
func (v *verbs) refuses(t *testing.T, args ...string) {
	t.Helper()
	begin := time.Now()
	if out, err := v.Make(t, args...); err == nil {
		t.Fatalf("make %v: %s", args, out)
	}
	if down := v.MostDown(t, begin); down > 1 {
		t.Errorf("make %v, which fails, had %d containers down at once", args, down)
	}
}

// interrupted kills a verb once it has printed a line that begins so. Then no other verb starts a node.
func (v *verbs) interrupted(t *testing.T, at string, args ...string) {
	t.Helper()
	v.KillMake(t, at, append(args, "YES=yes")...)
	v.refuses(t, "up")
	v.refuses(t, "replace", "NODE=b", "YES=yes")
}

// keepsData stops all nodes, and starts them again.
func (v *verbs) keepsData(t *testing.T) {
	t.Helper()
	greatest := v.ledger.Max("orders")
	if out, err := v.Make(t, "down"); err != nil {
		t.Fatalf("make down: %v: %s", err, out)
	}
	v.used["down"] = true
	v.does(t, "up")
	if _, saw := v.does(t, "backup", "TO="+t.TempDir()); saw.got == 0 || v.ledger.Max("orders") <= greatest {
		t.Errorf("after the nodes were down a caller got %s, up to %d", saw, v.ledger.Max("orders"))
	}
}

// skipped checks that the next number is above all that were given, by so much.
func (v *verbs) skipped(t *testing.T, above int64) {
	t.Helper()
	if greatest := v.ledger.Max("orders"); greatest < above || greatest > above+100_000 {
		t.Errorf("the greatest number is %d, want one above %d", greatest, above)
	}
}
