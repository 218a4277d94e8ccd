package boltfile_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/idnode/idnode/internal/boltfile"
	"github.com/idnode/idnode/internal/dirfile"
)

var (
	owner   = []byte("somebody")
	options = &bolt.Options{Timeout: time.Second, NoFreelistSync: true, NoSync: true}
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// grow opens the file and lets it grow by transactions with keys and values of
// all sizes, some longer than a page, in two buckets.
func grow(t *testing.T, path string, r *rand.Rand, transactions int) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, options)
	must(t, err)
	for range transactions {
		must(t, db.Update(func(tx *bolt.Tx) error {
			for _, name := range []string{"one", "two"} {
				b, err := tx.CreateBucketIfNotExists([]byte(name))
				if err != nil {
					return err
				}
				for range 1 + r.IntN(60) {
					key := fmt.Sprintf("%0*d", 1+r.IntN(200), r.IntN(400))
					if r.IntN(3) == 0 {
						err = b.Delete([]byte(key))
					} else {
						err = b.Put([]byte(key), make([]byte, r.IntN(20)*r.IntN(900)))
					}
					if err != nil {
						return err
					}
				}
			}
			return nil
		}))
	}
	must(t, db.Close())
}

// TestCheckAcceptsWhatBoltWrites, and finds the number of the last transaction.
func TestCheckAcceptsWhatBoltWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	r := rand.New(rand.NewPCG(1, 2))
	last := uint64(0)
	for range 40 {
		grow(t, path, r, 1+r.IntN(3))
		tx, err := boltfile.Check(path)
		must(t, err)
		if tx <= last {
			t.Fatalf("transaction %d after %d", tx, last)
		}
		last = tx
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	must(t, err)
	defer db.Close()
	must(t, db.View(func(tx *bolt.Tx) error {
		if uint64(tx.ID()) != last {
			t.Errorf("bbolt says transaction %d, Check %d", tx.ID(), last)
		}
		return nil
	}))
}

// TestWhatCheckAcceptsBoltOpens: bbolt ends the process where it does not like
// the structure of a file, so that nothing it would not like may pass.
func TestWhatCheckAcceptsBoltOpens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	grow(t, path, rand.New(rand.NewPCG(3, 4)), 12)
	good, err := os.ReadFile(path)
	must(t, err)
	r := rand.New(rand.NewPCG(5, 6))
	refused := 0
	for range 400 {
		bad := append([]byte(nil), good...)
		page := r.IntN(len(bad) / 4096)
		bad[page*4096+r.IntN(16+r.IntN(200))] ^= 1 << r.IntN(8)
		must(t, os.WriteFile(path, bad, 0o600))
		if _, err := boltfile.Check(path); err != nil {
			if !errors.Is(err, boltfile.ErrDamaged) {
				t.Fatal(err)
			}
			refused++
			continue
		}
		db, err := bolt.Open(path, 0o600, options)
		must(t, err)
		must(t, db.Update(func(*bolt.Tx) error { return nil }))
		must(t, db.Close())
	}
	if refused < 30 {
		t.Errorf("only %d files were refused", refused)
	}
}

func TestBothMetaPagesAreNeeded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	grow(t, path, rand.New(rand.NewPCG(7, 8)), 5)
	good, err := os.ReadFile(path)
	must(t, err)
	for name, damage := range map[string]func(b []byte){
		"the first is gone":  func(b []byte) { clear(b[:4096]) },
		"the second is gone": func(b []byte) { clear(b[4096:8192]) },
		"the first twice":    func(b []byte) { copy(b[4096:8192], b[:4096]) },
		"the second twice":   func(b []byte) { copy(b[:4096], b[4096:8192]) },
		"they changed places": func(b []byte) {
			first := append([]byte(nil), b[:4096]...)
			copy(b, b[4096:8192])
			copy(b[4096:], first)
		},
		"a bit in the first":   func(b []byte) { b[16+48] ^= 2 },
		"a bit in the second":  func(b []byte) { b[4096+16+16] ^= 1 },
		"a bit in a page size": func(b []byte) { b[16+9] ^= 0x20 },
	} {
		bad := append([]byte(nil), good...)
		damage(bad)
		must(t, os.WriteFile(path, bad, 0o600))
		if _, err := boltfile.Check(path); !errors.Is(err, boltfile.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func openMark(t *testing.T, path string, tx uint64) *boltfile.Mark {
	t.Helper()
	m, err := boltfile.OpenMark(path, owner, tx)
	must(t, err)
	return m
}

// TestMark: it never goes down, and a file that is behind it is refused.
func TestMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	if boltfile.HasMark(path) {
		t.Error("a mark before there is one")
	}
	m := openMark(t, path, 7)
	must(t, m.Put(9))
	must(t, m.Put(8))
	must(t, m.Close())
	for tx, want := range map[uint64]error{8: boltfile.ErrDamaged, 9: nil} {
		m, err := boltfile.OpenMark(path, owner, tx)
		if !errors.Is(err, want) {
			t.Errorf("a file of transaction %d: %v, want %v", tx, err, want)
		}
		if err == nil {
			must(t, m.Close())
		}
	}
	must(t, openMark(t, path, 20).Close())
	if _, err := boltfile.OpenMark(path, owner, 19); !errors.Is(err, boltfile.ErrDamaged) {
		t.Errorf("opening does not move the mark: %v", err)
	}
	if _, err := boltfile.OpenMark(path, []byte("else"), 20); !errors.Is(err, boltfile.ErrDamaged) {
		t.Errorf("another owner's mark: %v", err)
	}
}

// TestANewerMarkIsNoDamage: an operator who learns of damage empties the directory.
func TestANewerMarkIsNoDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	must(t, openMark(t, path, 1000).Close())
	must(t, os.WriteFile(path+".mark", []byte("idnmark\x02 of any length"), 0o600))
	_, err := boltfile.OpenMark(path, owner, 1000)
	for _, err := range []error{err, boltfile.CheckMark(path, owner, 1000), boltfile.Classify(err, boltfile.ErrDamaged)} {
		if !errors.Is(err, dirfile.ErrOtherVersion) || errors.Is(err, boltfile.ErrDamaged) {
			t.Errorf("%v", err)
		}
	}
}

func TestEveryDamagedMarkIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	must(t, openMark(t, path, 1000).Close())
	good, err := os.ReadFile(path + ".mark")
	must(t, err)
	try := func(what string, bad []byte) {
		t.Helper()
		must(t, os.WriteFile(path+".mark", bad, 0o600))
		if _, err := boltfile.OpenMark(path, owner, 1000); !errors.Is(err, boltfile.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for bit := range 8 * len(good) {
		bad := append([]byte(nil), good...)
		bad[bit/8] ^= 1 << (bit % 8)
		try(fmt.Sprint("bit ", bit), bad)
	}
	for length := range good {
		try(fmt.Sprint(length, " bytes"), good[:length])
	}
	try("a byte more", append(append([]byte(nil), good...), 0))
}

// faultError is a panic as that of a memory fault.
type faultError struct{}

func (faultError) Error() string { return "unexpected fault address" }
func (faultError) Addr() uintptr { return 4096 }

type failingReader struct{ err error }

func (f failingReader) ReadAt([]byte, int64) (int, error) { return 0, f.err }

// TestReadErrorIsNoDamage: nobody has seen what the disk has.
func TestReadErrorIsNoDamage(t *testing.T) {
	if _, err := boltfile.NewestTx(failingReader{syscall.EIO}); !errors.Is(err, syscall.EIO) || errors.Is(err, boltfile.ErrDamaged) {
		t.Errorf("a page that cannot be read: %v", err)
	}
	if _, err := boltfile.NewestTx(failingReader{io.EOF}); !errors.Is(err, boltfile.ErrDamaged) {
		t.Errorf("a page that is not there: %v", err)
	}
	sound := filepath.Join(t.TempDir(), "db")
	must(t, os.WriteFile(sound, []byte("x"), 0o600))
	for what, c := range map[string]struct {
		path    string
		panic   any
		damaged bool
	}{
		"a page that makes no sense":       {t.TempDir(), "bad page", true},
		"a fault in a file cut short":      {sound, faultError{}, true},
		"a fault in a file that is broken": {t.TempDir(), faultError{}, false}, // A folder cannot be read.
	} {
		err := boltfile.Trap(c.path, boltfile.ErrDamaged, func() error { panic(c.panic) })
		if err == nil || errors.Is(err, boltfile.ErrDamaged) != c.damaged {
			t.Errorf("%s: %v", what, err)
		}
	}
}
