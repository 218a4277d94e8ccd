package boltfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// cachedFile is a file on a disk whose syncs can fail. What is written is in memory; a
// sync brings it to the disk, and one that fails drops it without a trace: what is in memory
// counts as written from then on.
type cachedFile struct {
	memory, disk []byte
	// unsynced are the pages that a sync has to write.
	unsynced map[int]bool
	fails    bool
}

var errSync = errors.New("this sync fails")

func (f *cachedFile) ReadAt(b []byte, at int64) (int, error) { return copy(b, f.memory[at:]), nil }

func (f *cachedFile) WriteAt(b []byte, at int64) (int, error) {
	copy(f.memory[at:], b)
	size := os.Getpagesize()
	for page := int(at) / size; page*size < int(at)+len(b); page++ {
		f.unsynced[page] = true
	}
	return len(b), nil
}

func (f *cachedFile) Sync() error {
	defer clear(f.unsynced)
	if f.fails {
		return errSync
	}
	size := os.Getpagesize()
	for page := range f.unsynced {
		copy(f.disk[page*size:][:size], f.memory[page*size:])
	}
	return nil
}

// transact opens the content as a bbolt file, and returns it after another transaction.
func transact(t *testing.T, content []byte, values int) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte("values"))
		for i := range values {
			err = errors.Join(err, b.Put(fmt.Append(nil, i), make([]byte, 100)))
		}
		return err
	}), db.Close())
	if err != nil {
		t.Fatal(err)
	}
	changed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// TestAMetaPageWhoseSyncFailedReachesTheDisk: the next process, or the one after it, reads it
// from memory and commits a transaction. Then the machine loses power.
func TestAMetaPageWhoseSyncFailedReachesTheDisk(t *testing.T) {
	for name, failures := range map[string]int{"at once": 0, "when another sync has failed": 1} {
		t.Run(name, func(t *testing.T) {
			size := os.Getpagesize()
			for values := range 8 {
				before := transact(t, nil, 100)
				for range values % 2 { // Either meta page is the newest now and then.
					before = transact(t, before, 10)
				}
				f := &cachedFile{memory: transact(t, before, values), unsynced: map[int]bool{}}
				f.disk = append([]byte(nil), f.memory...)
				m, err := newestMeta(f)
				if err != nil {
					t.Fatal(err)
				}
				newest := int(m.tx%2) * size
				copy(f.disk[newest:][:size], before[newest:])
				f.fails = true
				for range failures {
					if err := settle(f); !errors.Is(err, errSync) {
						t.Fatalf("a process goes on after a failed sync: %v", err)
					}
				}
				f.fails = false
				if err := settle(f); err != nil {
					t.Fatal(err)
				}
				next := transact(t, f.memory, 3)
				f.memory, f.disk = append(f.memory, make([]byte, len(next)-len(f.memory))...), append(f.disk, make([]byte, len(next)-len(f.disk))...)
				for at := 0; at < len(next); at += size {
					if string(next[at:][:size]) != string(f.memory[at:][:size]) {
						_, _ = f.WriteAt(next[at:][:size], int64(at))
					}
				}
				if err := f.Sync(); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(t.TempDir(), "after")
				if err := os.WriteFile(path, f.disk, 0o600); err != nil {
					t.Fatal(err)
				}
				if tx, err := Check(path); err != nil || tx != m.tx+1 {
					t.Fatalf("after transaction %d and one more the disk has %d: %v", m.tx, tx, err)
				}
			}
		})
	}
}
