package store

import (
	"bytes"
	"context"
	"encoding/binary"
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

func logKey(index uint64) []byte { return binary.BigEndian.AppendUint64(nil, index) }

// TestFlippedBitInAnEntryIsNeverHandedOut flips each bit of a stored entry, as
// the running store would meet it. A flip may also hit what the entry does not
// consist of (framing that the decoder skips): then the entry is what it was.
func TestFlippedBitInAnEntryIsNeverHandedOut(t *testing.T) {
	backend := raft.NewInmemStore()
	var stored raft.Log
	must(t, newCheckedLog(backend, newGuard(Watchdog{Limit: time.Minute}, nil)).StoreLogs([]*raft.Log{entry(3)}))
	must(t, backend.GetLog(3, &stored))

	fields := map[string]func(*raft.Log, uint){
		"index":   func(l *raft.Log, bit uint) { l.Index ^= 1 << (bit % 64) },
		"term":    func(l *raft.Log, bit uint) { l.Term ^= 1 << (bit % 64) },
		"type":    func(l *raft.Log, bit uint) { l.Type ^= 1 << (bit % 8) },
		"data":    func(l *raft.Log, bit uint) { flip(l.Data, bit) },
		"ext":     func(l *raft.Log, bit uint) { flip(l.Extensions, bit) },
		"seconds": func(l *raft.Log, bit uint) { l.AppendedAt = l.AppendedAt.Add(1 << (bit % 60)) },
	}
	for name, damage := range fields {
		t.Run(name, func(t *testing.T) {
			for bit := range uint(8 * max(len(stored.Data), len(stored.Extensions))) {
				bad := stored
				bad.Data = append([]byte(nil), stored.Data...)
				bad.Extensions = append([]byte(nil), stored.Extensions...)
				damage(&bad, bit)
				if err := stripChecksum(3, &bad); !errors.Is(err, ErrCorrupt) {
					t.Fatalf("bit %d: %v", bit, err)
				}
			}
		})
	}
}

func flip(b []byte, bit uint) { b[bit/8%uint(len(b))] ^= 1 << (bit % 8) }

// TestFlippedByteInTheFile flips every byte of stored values through bbolt.
func TestFlippedByteInTheFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		bucket []byte
		key    []byte
	}{
		{"entry", bucketLogs, logKey(6)},
		{"last entry", bucketLogs, logKey(9)},
		{"tail record", bucketLogs, logKey(tailIndex)},
		{"term", bucketConf, []byte("CurrentTerm")},
		{"vote", bucketConf, []byte("LastVoteCand")},
		{"node id", bucketConf, keyNodeID},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := testConfig(t.TempDir(), newFatals())
			s := mustOpen(t, cfg)
			fill(t, s)
			mustClose(t, s)
			good := rawValue(t, cfg.Dir, c.bucket, c.key)
			detected := 0
			for i := range good {
				bad := append([]byte(nil), good...)
				bad[i] ^= 1 << (i % 8)
				edit(t, cfg.Dir, func(tx *bbolt.Tx) error { return tx.Bucket(c.bucket).Put(c.key, bad) })
				if openIsHonest(t, cfg) {
					detected++
				}
			}
			t.Logf("%d of %d flips refused, the rest did not change what is read", detected, len(good))
			if detected < len(good)*3/4 {
				t.Errorf("only %d of %d flips were refused", detected, len(good))
			}
		})
	}
}

// fill gives a store the contents that checkFilled expects.
func fill(t testing.TB, s *Store) {
	t.Helper()
	must(t, s.StoreLogs(entries(1, 9)))
	must(t, s.SetUint64([]byte("CurrentTerm"), 5))
	must(t, s.SetUint64([]byte("LastVoteTerm"), 5))
	must(t, s.Set([]byte("LastVoteCand"), []byte("someone")))
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
	if err := errors.Join(err, err2, err3); err != nil && s.Err() == nil {
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

// openIsHonest reports whether the damage was refused; if it was not, everything read
// must be what was written.
func openIsHonest(t *testing.T, cfg Config) (refused bool) {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		return true
	}
	defer mustClose(t, s)
	if err := checkFilled(s); err != nil {
		t.Fatalf("damage got through: %v", err)
	}
	return false
}

func rawValue(t *testing.T, dir string, bucket, key []byte) (value []byte) {
	t.Helper()
	edit(t, dir, func(tx *bbolt.Tx) error {
		value = append([]byte(nil), tx.Bucket(bucket).Get(key)...)
		return nil
	})
	if len(value) == 0 {
		t.Fatalf("no value at %q", key)
	}
	return value
}

func TestDamageWhileRunningStopsTheStore(t *testing.T) {
	f := newFatals()
	cfg := testConfig(t.TempDir(), f)
	cfg.CacheEntries = 1
	inmem := raft.NewInmemStore()
	s := openOn(t, cfg, inmem)
	must(t, s.StoreLogs(entries(1, 9)))
	must(t, inmem.DeleteRange(1, 5)) // behind the store's back
	if err := s.GetLog(3, new(raft.Log)); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("lost entry: %v", err)
	}
	if errs := f.all(); len(errs) != 1 || !errors.Is(errs[0], ErrCorrupt) {
		t.Errorf("Fatal was called with %v", errs)
	}
	// Neither sound entries, cached ones, nor writes go through any more.
	for what, err := range map[string]error{
		"sound":  s.GetLog(7, new(raft.Log)),
		"cached": s.GetLog(9, new(raft.Log)),
		"write":  s.StoreLogs(entries(10, 10)),
		"vote":   s.SetUint64([]byte("LastVoteTerm"), 9),
	} {
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s after damage: %v", what, err)
		}
	}
}

func TestLostVoteIsNoMissingVote(t *testing.T) {
	cfg := testConfig(t.TempDir(), newFatals())
	inmem := raft.NewInmemStore()
	s := openOn(t, cfg, inmem)
	must(t, s.Set([]byte("LastVoteCand"), []byte("b")))
	must(t, inmem.Set([]byte("LastVoteCand"), nil))
	if _, err := s.Get([]byte("LastVoteCand")); !errors.Is(err, ErrCorrupt) {
		t.Errorf("lost vote: %v", err)
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
	if out, err := openInHelper(t, good); err != nil {
		t.Fatalf("the undamaged file: %v\n%s", err, out)
	}
	random := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range rounds {
		bad := append([]byte(nil), good...)
		at := flipSomethingUsed(random, bad)
		out, err := openInHelper(t, bad)
		if bytes.Contains(out, []byte("SILENT")) {
			t.Errorf("flip at %d: %s", at, out)
		}
		if err != nil {
			refused++
		}
	}
	t.Logf("%d of %d flips refused, the rest hit unused bytes", refused, rounds)
}

// openInHelper opens a file with the given beginning in a process of its own.
func openInHelper(t *testing.T, content []byte) ([]byte, error) {
	t.Helper()
	dir := t.TempDir()
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
