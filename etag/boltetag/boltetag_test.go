package boltetag_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/etag/boltetag"
	"github.com/idnode/idnode/test/tier"
)

var node = boltetag.Options{NodeID: []byte("0123456789abcdef")}

// config is that of counters with blocks of this size.
func config(block uint64) etag.Config {
	return etag.Config{BlockSize: block, MaxDatabases: func() int { return 10_000 }, Logger: slog.New(slog.DiscardHandler)}
}

func open(t testing.TB, path string) *boltetag.Store {
	t.Helper()
	s, err := boltetag.Open(path, node)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func load(t testing.TB, s *boltetag.Store) etag.Stored {
	t.Helper()
	state, err := s.Load()
	must(t, err)
	return state
}

func TestStoreKeepsItsState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "etags.db")
	s := open(t, path)
	check := func(want etag.Stored) {
		t.Helper()
		if diff := cmp.Diff(want, load(t, s)); diff != "" {
			t.Fatalf("before reopening (-want +got):\n%s", diff)
		}
		must(t, s.Close())
		s = open(t, path)
		if diff := cmp.Diff(want, load(t, s)); diff != "" {
			t.Fatalf("after reopening (-want +got):\n%s", diff)
		}
	}
	check(etag.Stored{Databases: map[string]uint64{}})
	must(t, s.Reserve(etag.Reservation{Limits: map[string]uint64{"a": 100, "b": 200}}))
	check(etag.Stored{Databases: map[string]uint64{"a": 100, "b": 200}})
	must(t, s.Reserve(etag.Reservation{Start: 7, Limits: map[string]uint64{"b": etag.MaxEtag}}))
	check(etag.Stored{Start: 7, Databases: map[string]uint64{"a": 100, "b": etag.MaxEtag}})
	must(t, s.Stop(map[string]uint64{"a": 3, "b": 5}))
	check(etag.Stored{Clean: true, Start: 7, Databases: map[string]uint64{"a": 3, "b": 5}})
	must(t, s.Reserve(etag.Reservation{Start: 8}))
	check(etag.Stored{Start: 8, Databases: map[string]uint64{"a": 3, "b": 5}})
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("file mode %v", info.Mode())
	}
	if _, err := os.Stat(path + ".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the draft is still there: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	folder := t.TempDir()
	held := filepath.Join(folder, "held.db")
	_ = open(t, held)
	other := filepath.Join(folder, "other.db")
	s, err := boltetag.Open(other, boltetag.Options{NodeID: []byte("someone else")})
	must(t, err)
	must(t, s.Close())
	empty := filepath.Join(folder, "empty.db")
	must(t, os.WriteFile(empty, nil, 0o600))
	text := filepath.Join(folder, "text.db")
	must(t, os.WriteFile(text, []byte(strings.Repeat("this is no bolt file ", 4096)), 0o600))
	bare := filepath.Join(folder, "bare.db")
	db, err := bolt.Open(bare, 0o600, nil)
	must(t, err)
	must(t, db.Close())
	for name, tc := range map[string]struct {
		path string
		want error
	}{
		"in use":             {held, boltetag.ErrInUse},
		"of another node":    {other, boltetag.ErrOtherNode},
		"empty":              {empty, etag.ErrCorrupt},
		"no bolt file":       {text, etag.ErrCorrupt},
		"a bolt file, empty": {bare, etag.ErrCorrupt},
		"no such folder":     {filepath.Join(folder, "none", "etags.db"), fs.ErrNotExist},
	} {
		if _, err := boltetag.Open(tc.path, node); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

// A draft that a crash left behind is no obstacle, and never taken for a file.
func TestOpenAfterACrashWhileTheFileWasMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "etags.db")
	must(t, os.WriteFile(path+".new", []byte("half a file"), 0o600))
	if state := load(t, open(t, path)); len(state.Databases) != 0 {
		t.Errorf("state %+v", state)
	}
}

// change edits a stored value behind the store's back.
func change(t *testing.T, path, bucket string, edit func(*bolt.Bucket) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	must(t, err)
	must(t, db.Update(func(tx *bolt.Tx) error { return edit(tx.Bucket([]byte(bucket))) }))
	must(t, db.Close())
}

func TestDamagedRecordsAreNoticed(t *testing.T) {
	flip := func(key string) func(*bolt.Bucket) error {
		return func(b *bolt.Bucket) error {
			value := append([]byte(nil), b.Get([]byte(key))...)
			value[0] ^= 1
			return b.Put([]byte(key), value)
		}
	}
	for name, tc := range map[string]struct {
		bucket string
		edit   func(*bolt.Bucket) error
	}{
		"a counter":         {"databases", flip("a")},
		"the node":          {"meta", flip("node")},
		"the clean mark":    {"meta", flip("clean")},
		"the start":         {"meta", flip("start")},
		"the count":         {"meta", flip("count")},
		"a lost counter":    {"databases", func(b *bolt.Bucket) error { return b.Delete([]byte("a")) }},
		"a lost mark":       {"meta", func(b *bolt.Bucket) error { return b.Delete([]byte("clean")) }},
		"a short value":     {"databases", func(b *bolt.Bucket) error { return b.Put([]byte("a"), []byte{1, 2}) }},
		"a swapped counter": {"databases", func(b *bolt.Bucket) error { return b.Put([]byte("a"), append([]byte(nil), b.Get([]byte("b"))...)) }},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "etags.db")
			s := open(t, path)
			must(t, s.Reserve(etag.Reservation{Start: 2, Limits: map[string]uint64{"a": 1, "b": 2}}))
			must(t, s.Close())
			change(t, path, tc.bucket, tc.edit)
			if _, err := boltetag.Open(path, node); !errors.Is(err, etag.ErrCorrupt) {
				t.Errorf("Open: %v", err)
			}
		})
	}
}

// TestFlippedBytesNeverLowerACounter flips single bits all over the file. The
// file is then refused, or it says nothing lower than what was acknowledged. The quick
// tests have every eighth of the flips.
func TestFlippedBytesNeverLowerACounter(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "etags.db")
	s := open(t, path)
	want := make(map[string]uint64)
	for round := range uint64(3) {
		for i := range 200 { // enough for a branch page and several leaves
			want[fmt.Sprint("database-", i)] = 1000*(round+1) + uint64(i)
		}
		must(t, s.Reserve(etag.Reservation{Start: round + 1, Limits: want}))
	}
	must(t, s.Close())
	good, err := os.ReadFile(path)
	must(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	refused, all, each := 0, 0, 8
	if tier.All() {
		each = 1
	}
	place := 0
	for i := range flips(good) {
		if place++; place%each != 0 {
			continue
		}
		all++
		damaged := append([]byte(nil), good...)
		damaged[i] ^= 1 << rng.IntN(8)
		if flipped(t, filepath.Join(folder, "flip"+strconv.Itoa(i)), damaged, want) {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no flip was noticed: the test flips nothing that is read")
	}
	t.Logf("%d of %d flips were noticed, the others changed nothing that counts", refused, all)
}

// flips yields the places of bytes to flip: all in the heads of pages, where
// the structure is, and every seventh of the others that are not zero.
func flips(file []byte) func(func(int) bool) {
	return func(yield func(int) bool) {
		page := os.Getpagesize()
		for i, b := range file {
			if i%page < 24 || (i%page < 160 && i%2 == 0) || (b != 0 && i%61 == 0) {
				if !yield(i) {
					return
				}
			}
		}
	}
}

// flipped reports whether the damaged file is refused, and fails the test when it is
// accepted with less than what was stored.
func flipped(t *testing.T, path string, damaged []byte, want map[string]uint64) bool {
	t.Helper()
	must(t, os.WriteFile(path, damaged, 0o600))
	defer func() { must(t, os.Remove(path)) }()
	s, err := boltetag.Open(path, node)
	if err != nil {
		if !errors.Is(err, etag.ErrCorrupt) {
			t.Errorf("%s: refused with %v", path, err)
		}
		return true
	}
	defer func() { must(t, s.Close()) }()
	state := load(t, s)
	for database, value := range want {
		if state.Databases[database] < value || state.Clean {
			t.Errorf("%s: accepted with %d for %s (clean %t), stored was %d",
				path, state.Databases[database], database, state.Clean, value)
		}
	}
	return false
}

// TestACopyOfTheFileIsACrash takes copies of the file while counters use it: a
// start on each copy must go on above everything handed out before the copy.
func TestACopyOfTheFileIsACrash(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		folder, err := os.MkdirTemp(t.TempDir(), "")
		must(t, err)
		path := filepath.Join(folder, "etags.db")
		last := uint64(0)
		for start := range rapid.IntRange(1, 3).Draw(rt, "starts") {
			c, err := etag.Open(open(t, path), config(8))
			must(t, err)
			for range rapid.IntRange(0, 6).Draw(rt, "etags") {
				n := rapid.IntRange(1, 10).Draw(rt, "n")
				first, err := c.NextBlock("a", n)
				must(t, err)
				if first <= last {
					rt.Fatalf("etag %d after %d", first, last)
				}
				last = first + uint64(n) - 1
			}
			if rapid.Bool().Draw(rt, "clean") {
				must(t, c.Close())
				continue
			}
			// The background reservation may be at work: the copy is what a
			// crash leaves, because bbolt writes its meta page last.
			copied, err := os.ReadFile(path)
			must(t, err)
			must(t, c.Close())
			path = filepath.Join(folder, fmt.Sprint("copy", start))
			must(t, os.WriteFile(path, copied, 0o600))
		}
	})
}

// The check of the pages must accept every file that bbolt makes: here one with
// several levels of pages, whose names came in no order.
func TestManyDatabases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "etags.db")
	s := open(t, path)
	rng := rand.New(rand.NewPCG(3, 4))
	want := make(map[string]uint64)
	for range 5 {
		limits := make(map[string]uint64)
		for range 2000 {
			name := fmt.Sprintf("%0*d", 1+rng.IntN(128), rng.Uint64())
			limits[name[:min(len(name), 128)]] = rng.Uint64() / 2
		}
		maps.Copy(want, limits)
		must(t, s.Reserve(etag.Reservation{Limits: limits}))
		must(t, s.Close())
		s = open(t, path)
	}
	must(t, s.Stop(want))
	if diff := cmp.Diff(etag.Stored{Clean: true, Databases: want}, load(t, s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func BenchmarkReserve(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "etags.db"))
	limit := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		limit += 65_536
		must(b, s.Reserve(etag.Reservation{Limits: map[string]uint64{"default": limit}}))
	}
}

func BenchmarkNextOnDisk(b *testing.B) {
	c, err := etag.Open(open(b, filepath.Join(b.TempDir(), "etags.db")), config(0))
	must(b, err)
	defer func() { must(b, c.Close()) }()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Next("default"); err != nil {
			b.Fatal(err)
		}
	}
}

// TestMissingFile: counters that may have been used never begin at zero again.
func TestMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "etags.db")
	if _, err := boltetag.Open(path, boltetag.Options{NodeID: []byte("node"), MustExist: true}); !errors.Is(err, boltetag.ErrMissing) {
		t.Errorf("Open: %v, want %v", err, boltetag.ErrMissing)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
	store, err := boltetag.Open(path, boltetag.Options{NodeID: []byte("node")})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store, err = boltetag.Open(path, boltetag.Options{NodeID: []byte("node"), MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestOlderFileIsNoticed: an older copy of the file alone, beside its mark.
func TestOlderFileIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "etags.db")
	s := open(t, path)
	must(t, s.Reserve(etag.Reservation{Limits: map[string]uint64{"a": 100}}))
	older, err := os.ReadFile(path)
	must(t, err)
	must(t, s.Stop(map[string]uint64{"a": 3}))
	must(t, s.Close())
	must(t, os.WriteFile(path, older, 0o600))
	if _, err := boltetag.Open(path, node); !errors.Is(err, etag.ErrCorrupt) {
		t.Errorf("Open: %v", err)
	}
	must(t, os.Remove(path))
	if _, err := boltetag.Open(path, node); !errors.Is(err, boltetag.ErrMissing) {
		t.Errorf("Open without the file, beside its mark: %v", err)
	}
}

// TestOneMetaPageIsNotEnough: without the newer one, bbolt takes back the newest
// transaction.
func TestOneMetaPageIsNotEnough(t *testing.T) {
	path := filepath.Join(t.TempDir(), "etags.db")
	s := open(t, path)
	must(t, s.Stop(map[string]uint64{"a": 3}))
	must(t, s.Close())
	good, err := os.ReadFile(path)
	must(t, err)
	page := os.Getpagesize()
	for i := range 2 {
		bad := append([]byte(nil), good...)
		copy(bad[i*page:], good[(1-i)*page:][:page])
		must(t, os.WriteFile(path, bad, 0o600))
		if _, err := boltetag.Open(path, node); !errors.Is(err, etag.ErrCorrupt) {
			t.Errorf("with meta page %d only: %v", 1-i, err)
		}
	}
}
