package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
)

// TestFlippedByteInTheFile flips every byte of stored values through bbolt.
func TestFlippedByteInTheFile(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"term": keyTerm, "vote": keyVote, "node id": string(keyNodeID)} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t.TempDir(), newFatals())
			s := mustOpen(t, cfg)
			fill(t, s)
			mustClose(t, s)
			var good []byte
			edit(t, cfg.Dir, func(tx *bbolt.Tx) error {
				good = bytes.Clone(tx.Bucket(bucketConf).Get([]byte(key)))
				return nil
			})
			for i := range good {
				bad := bytes.Clone(good)
				bad[i] ^= 1 << (i % 8)
				edit(t, cfg.Dir, func(tx *bbolt.Tx) error { return tx.Bucket(bucketConf).Put([]byte(key), bad) })
				wantOpen(t, cfg, ErrCorrupt)
			}
			if len(good) < termBytes {
				t.Errorf("only %d flips were tried", len(good))
			}
		})
	}
}

// fill gives a store the contents that checkFilled expects.
func fill(t testing.TB, s *Store) {
	t.Helper()
	must(t, s.StoreLogs(entries(1, 9)))
	must(t, s.SetUint64([]byte("CurrentTerm"), 5))
	must(t, vote(s, 5, "someone"))
}

func checkFilled(s *Store) error {
	for i := uint64(1); i <= 9; i++ {
		var got raft.Log
		if err := s.GetLog(i, &got); err != nil {
			return err
		}
		if !cmp.Equal(entry(i), &got) {
			return fmt.Errorf("SILENT: entry %d is %+v", i, got)
		}
	}
	term, err := s.GetUint64([]byte("LastVoteTerm"))
	vote, err2 := s.Get([]byte("LastVoteCand"))
	current, err3 := s.GetUint64([]byte("CurrentTerm"))
	if err := errors.Join(err, err2, err3); err != nil && s.guard.err() == nil {
		return fmt.Errorf("SILENT: %w", err)
	} else if err != nil {
		return err
	}
	last, err := s.LastIndex()
	if term != 5 || current != 5 || string(vote) != "someone" || last != 9 || err != nil {
		return fmt.Errorf("SILENT: vote %d %q, term %d, last %d, %v", term, vote, current, last, err)
	}
	return nil
}

func TestDamageWhileRunningStopsTheStore(t *testing.T) {
	f := newFatals()
	cfg := testConfig(t.TempDir(), f)
	cfg.cacheEntries = 1
	s := mustOpen(t, cfg)
	must(t, s.StoreLogs(entries(1, 9)))
	segments, err := filepath.Glob(filepath.Join(cfg.Dir, logDir, "*.log"))
	must(t, err)
	must(t, os.Truncate(segments[0], 100)) // behind the store's back
	if err := s.GetLog(3, new(raft.Log)); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("lost entry: %v", err)
	}
	if errs := f.all(); len(errs) != 1 || !errors.Is(errs[0], ErrCorrupt) {
		t.Errorf("Fatal was called with %v", errs)
	}
	// Neither cached entries nor writes go through any more.
	for what, err := range map[string]error{
		"cached": s.GetLog(9, new(raft.Log)),
		"write":  s.StoreLogs(entries(10, 10)),
		"vote":   s.SetUint64([]byte("LastVoteTerm"), 9),
	} {
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s after damage: %v", what, err)
		}
	}
}

const helperDir = "IDNODE_STORE_TEST_OPEN"

// inHelperProcess opens the directory named in the environment, if there is one,
// and says by its exit code how that went: bbolt meets some damage with a panic
// on a goroutine of its own, which no recover of ours can stop, and then the
// process is to end.
func inHelperProcess() bool {
	dir := os.Getenv(helperDir)
	if dir == "" {
		return false
	}
	s, err := Open(testConfig(dir, newFatals()))
	if err != nil {
		os.Exit(3)
	}
	if err := checkFilled(s); err != nil {
		fmt.Println(err)
		os.Exit(4)
	}
	return true
}

// TestFlipAnywhereInTheFile flips random bits of the whole file: page headers,
// branch pages, meta pages. The process must refuse, crash, or read exactly what
// was written.
func TestFlipAnywhereInTheFile(t *testing.T) {
	t.Parallel()
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	source := t.TempDir()
	s := mustOpen(t, testConfig(source, newFatals()))
	fill(t, s)
	mustClose(t, s)
	good := usedPart(t, source)
	must(t, os.Remove(filepath.Join(source, fileName+".mark"))) // What the file tells by itself is tried.
	if out, err := openInHelper(t, source, good); err != nil {
		t.Fatalf("the undamaged file: %v\n%s", err, out)
	}
	random := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range rounds {
		bad := append([]byte(nil), good...)
		at := flipSomethingUsed(random, bad)
		out, err := openInHelper(t, source, bad)
		if bytes.Contains(out, []byte("SILENT")) {
			t.Errorf("flip at %d: %s", at, out)
		}
		if err != nil {
			refused++
		}
	}
	t.Logf("%d of %d flips refused, the rest hit unused bytes", refused, rounds)
}

// openInHelper opens a copy of a store, whose file has the given beginning, in a process
// of its own.
func openInHelper(t *testing.T, source string, content []byte) ([]byte, error) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(source)))
	must(t, os.WriteFile(filepath.Join(dir, fileName), content, fileMode))
	must(t, os.Truncate(filepath.Join(dir, fileName), 16<<20))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), helperDir+"="+dir)
	return cmd.CombinedOutput()
}

// usedPart reads the pages of a closed store's file that bbolt ever used.
func usedPart(t *testing.T, dir string) (used []byte) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, fileName), fileMode, &bbolt.Options{ReadOnly: true})
	must(t, err)
	must(t, db.View(func(tx *bbolt.Tx) error {
		used = make([]byte, tx.Size())
		return nil
	}))
	must(t, db.Close())
	f, err := os.Open(filepath.Join(dir, fileName))
	must(t, err)
	defer f.Close()
	_, err = f.ReadAt(used, 0)
	must(t, err)
	return used
}

// flipSomethingUsed flips a random bit of a byte that is not zero, since most
// bytes of a small file are, and mean nothing.
func flipSomethingUsed(random *rand.Rand, b []byte) int {
	for {
		at := random.IntN(len(b))
		if b[at] != 0 {
			b[at] ^= 1 << random.IntN(8)
			return at
		}
	}
}
