package disaster

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// lines runs commands that must succeed, one a line, at a node.
func lines(t *testing.T, n *harness.Node, commands string) (out string) {
	t.Helper()
	for command := range strings.Lines(commands) {
		if words := strings.Fields(command); len(words) > 0 {
			out += must(t, with(words, "--endpoint", n.GRPC)...)
		}
	}
	return out
}

// says runs a command at a node, which must print a text. A code of 0 is success, and then
// the text is on the standard output.
func says(t *testing.T, n *harness.Node, code int, command string, want ...string) {
	t.Helper()
	r := idnode(t, with(strings.Fields(command), "--endpoint", n.GRPC)...)
	for _, text := range want {
		if !strings.Contains(r.out+r.errors, text) {
			t.Errorf("%s: %q is not in %s%s", command, text, r.out, r.errors)
		}
	}
	if r.code != code {
		t.Errorf("%s: exit code %d, want %d: %s%s", command, r.code, code, r.out, r.errors)
	}
}

// TestTheBooksDecideAfterADisaster follows the steps of docs/series.md by command line: two
// backups, a cluster that is lost with all that came after them, and then what the books have.
// No number is on two documents, and nothing that is in the books is refused.
func TestTheBooksDecideAfterADisaster(t *testing.T) {
	tier.Long(t)
	dir := t.TempDir()
	monday, tuesday, floor := filepath.Join(dir, "monday"), filepath.Join(dir, "tuesday"), filepath.Join(dir, "floor.csv")
	if err := os.WriteFile(floor, []byte("database,kind,name,value\n,identity,invoices,9000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := harness.StartCluster(t, harness.Config{Size: 1, Direct: true}).Nodes[0]
	lines(t, old, `
		series define orders --format W{number:6+} --on-release reuse-lowest --on-expiry reuse-lowest --expires-in 1ms
		series take orders --key cart-1 --key cart-2
		series release orders --key cart-1 --yes
		series define bills --format B-{year}-{number:4} --reset-by year --order dates-do-not-go-back --on-expiry void --expires-in 24h
		series take bills --key b0 --date 2025-12-30
		series confirm bills --key b0
		series take bills --key b1 --date 2026-03-01
		series define notes --format N{number}
		series take notes --key n1 --key n2 --key n3
		series define other --format O{number}
		series take other --key o1
		series confirm other --key o1
		backup `+monday+`
		series take orders --key cart-3
		series confirm orders --key cart-3 --number 1
		series take orders --key cart-2
		series confirm orders --key cart-2 --number 2
		series confirm bills --key b1
		series take bills --key b2 --date 2026-11-20
		series confirm bills --key b2
		series close bills 2025 --yes
		series confirm notes --key n1
		series take notes --key n4
		series confirm notes --key n4
		backup `+tuesday+`
		series take notes --key n5
		series confirm notes --key n5
		series define late --format L{number}
		series take late --key l1`)
	old.Process.Kill()

	cluster := harness.NewCluster(t, harness.Config{Size: 1, Direct: true})
	n := cluster.Nodes[0]
	n.Tag, n.DataDir = "D", n.DataDir+"-new"
	n.Start(t)
	cluster.WaitReady(t)
	lines(t, n, `
		series define other --format X{number}
		series take other --key x1
		series confirm other --key x1`)
	restore := func(file, suspended string) {
		t.Helper()
		says(t, n, 1, "restore "+file+" --floor "+floor+" --yes", suspended, `not merged: series "other": SERIES_DIFFERS`,
			"1 were not merged, or not all of them")
		says(t, n, 0, "next invoices|", "invoices/900")
	}
	restore(monday, `3 series by this restore: "bills", "notes", "orders"`)

	// A series that began after the backup may have given numbers too.
	says(t, n, 0, "series define late --format L{number}", `"late" is suspended`)
	says(t, n, 1, "series take late --key l2", "SERIES_SUSPENDED")
	says(t, n, 0, "series resume late --last -=250000 --yes", "late resumed")
	says(t, n, 0, "series take late --key l2", "L250001")

	// What waited for another key is on documents by now.
	says(t, n, 1, "series take orders --key cart-8", "SERIES_SUSPENDED")
	says(t, n, 0, "series resume orders --last -=2 --yes", "orders resumed")
	says(t, n, 0, "series take orders --key cart-8 --key cart-9", "W000003\nW000004\n")
	says(t, n, 0, "series report orders --state unknown", "W000001\tunknown", "W000002\tunknown\tcart-2\t")
	says(t, n, 0, "series reconcile orders - --yes --number 1=cart-3 --number 2=cart-2",
		"W000001\tconfirmed\tcart-3", "W000002\tconfirmed\tcart-2")
	says(t, n, 0, "series take orders --key cart-3", "W000001")
	says(t, n, 1, "series reconcile orders - --yes --number 1=cart-8", "KEY_CONFLICT")

	// The order of dates holds against the books, and so does the end of a year.
	says(t, n, 2, "series resume bills --last 2026=2 --yes", "--last 2026,BERLIN=4711@2026-12-30")
	says(t, n, 0, "series resume bills --last 2026=2@2026-11-20 --closed 2025 --yes", "bills resumed")
	says(t, n, 1, "series take bills --key b9 --date 2026-07-01", "DATE_GOES_BACK")
	says(t, n, 1, "series take bills --key b9 --date 2025-12-31", "SCOPE_CLOSED")
	says(t, n, 0, "series confirm bills --key b1", "B-2026-0001\tconfirmed")
	says(t, n, 0, "series reconcile bills 2026 --yes --number 2=b2", "B-2026-0002\tconfirmed\tb2")
	says(t, n, 0, "series take bills --key b9 --date 2026-11-21", "B-2026-0003")

	// A newer backup comes after the older one, and after a resume.
	says(t, n, 0, "series resume notes --last -=5 --yes", "notes resumed")
	restore(tuesday, `1 series by this restore: "notes"`)
	says(t, n, 0, "series who-has notes --key n1", "confirmed")
	says(t, n, 0, "series who-has notes --text N4", "confirmed", "n4")
	says(t, n, 0, "series resume notes --last -=5 --yes", "notes resumed")
	says(t, n, 0, "series reconcile notes - --yes --number 5=n5 --number 2= --number 3= --reason torn", "N5\tconfirmed\tn5",
		"N2\tvoided\t\t", "torn")
	says(t, n, 0, "series take notes --key n2", "N6") // It was on no document, so it may have another number.
	if out := idnode(t, "restore", tuesday, "--floor", floor, "--yes", "--endpoint", n.GRPC).out; strings.Contains(out, "suspended") {
		t.Errorf("to restore again suspends something: %s", out)
	}

	for _, name := range []string{"orders", "bills", "notes", "late"} {
		says(t, n, 0, "series verify "+name, "ok")
	}
}

// TestTheBooksDecideAfterARecovery: the one node that is left does not know what the others
// agreed on while it stood still. No number is on two documents, also without a skip.
func TestTheBooksDecideAfterARecovery(t *testing.T) {
	tier.Long(t)
	c := harness.StartCluster(t, harness.Config{Direct: true})
	a, left := c.Nodes[0], c.Nodes[2]
	lines(t, left, `
		series define orders --format W{number:6+} --on-release reuse-lowest --on-expiry reuse-lowest --expires-in 1ms
		series take orders --key cart-1 --key cart-2
		series release orders --key cart-1 --yes`)
	left.Process.Signal(t, syscall.SIGSTOP)
	lines(t, a, `
		series take orders --key cart-3
		series confirm orders --key cart-3 --number 1
		series take orders --key cart-2
		series confirm orders --key cart-2 --number 2`)
	for _, n := range c.Nodes {
		n.Process.Kill()
	}
	must(t, "recover", "--data-dir", left.DataDir, "--members", left.Tag, "--skip-ahead", "0", "--yes")
	left.Start(t)
	left.WaitReady(t)

	says(t, left, 1, "series take orders --key cart-8", "SERIES_SUSPENDED")
	says(t, left, 0, "series resume orders --last -=2 --yes", "orders resumed")
	says(t, left, 0, "series take orders --key cart-8 --key cart-9", "W000003\nW000004\n")
	says(t, left, 0, "series report orders --state unknown", "W000001\tunknown", "W000002\tunknown\tcart-2\t")
	says(t, left, 0, "series reconcile orders - --yes --number 1=cart-3 --number 2=cart-2", "W000001\tconfirmed\tcart-3",
		"W000002\tconfirmed\tcart-2")
	says(t, left, 0, "series verify orders", "ok")
}
