package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idnode/idnode/bench/result"
	"github.com/idnode/idnode/bench/system"
)

// TestMain makes the test program a member of a cluster when it is asked to,
// as the program does.
func TestMain(m *testing.M) {
	if asked, err := system.Member(context.Background(), os.Args[1:]); asked {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestMeasureAndReport goes all the way, with what is always there, and reports
// the same again from the file.
func TestMeasureAndReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.jsonl")
	var measured, again, progress bytes.Buffer
	args := strings.Fields("--runs 2 --duration 50ms --warm-up 10ms --callers 1,4 --only raft --output - --results " + file)
	if err := run(t.Context(), args, &measured, &progress); err != nil {
		t.Fatalf("%s\n%s", err, progress.String())
	}
	if err := run(t.Context(), []string{"report", "--output", "-", file}, &again, &progress); err != nil {
		t.Fatal(err)
	}
	if measured.String() != again.String() {
		t.Errorf("%s\nis reported again as\n%s", measured.String(), again.String())
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	results, err := result.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	loads := map[int]int{}
	for _, r := range results {
		if r.Load != nil {
			loads[r.Run]++
		}
	}
	if len(loads) != 2 || loads[1] != 2 || loads[2] != 2 {
		t.Errorf("loads by run: %v", loads)
	}
	if a := results.About(); a.Runs != 2 || !strings.HasPrefix(a.Command, "go run . --runs 2 ") || len(a.Versions) == 0 {
		t.Errorf("%+v", a)
	}
}

// TestAnUnfinishedMeasurementLeavesTheLastOne would fail if the file were opened
// for writing at once.
func TestAnUnfinishedMeasurementLeavesTheLastOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.jsonl")
	if err := os.WriteFile(file, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var progress bytes.Buffer
	args := []string{"--repository", t.TempDir(), "--results", file, "--output", "-"}
	if err := run(t.Context(), args, &progress, &progress); err == nil {
		t.Fatal("idnode was built where it is not")
	}
	if kept, err := os.ReadFile(file); err != nil || string(kept) != "{}\n" {
		t.Errorf("%q %v", kept, err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, args := range []string{
		"--runs 0", "--duration 0s", "--warm-up 0s", "--callers 1,x", "--callers 0", "--only etcd,mysql", "--only", "extra", "--no-such",
		"--sync-delay -1ms", "--sync-delay 2s", "--sync-delay 5ms", "--sync-delay 5ms --output -", "--sync-delay 5ms --results x",
		"report", "report a b", "report no-such-file",
	} {
		var out bytes.Buffer
		if err := run(t.Context(), strings.Fields(args), &out, &out); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}
