package store

import (
	"errors"
	"os"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/boltfile"
)

// markedBolt is a raft.db whose mark follows every transaction: an older copy of the
// file, without the newest votes and entries, is detected at open.
type markedBolt struct {
	bolt boltStore
	mark *boltfile.Mark
	// file is used to read the number of the newest transaction.
	file *os.File

	// writing holds a value during each write, so that the newest transaction in
	// the file is one that was acknowledged. bbolt writes one at a time anyway.
	writing chan struct{}
}

var _ backend = (*markedBolt)(nil)

func openMarked(path string, noSync bool, mark *boltfile.Mark) (*markedBolt, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	bolt, err := openBolt(path, noSync)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &markedBolt{bolt: bolt, mark: mark, file: file, writing: make(chan struct{}, 1)}, nil
}

func (b *markedBolt) write(do func() error) error {
	b.writing <- struct{}{}
	defer func() { <-b.writing }()
	if err := do(); err != nil {
		return err
	}
	newest, err := boltfile.NewestTx(b.file)
	if err != nil {
		return err
	}
	return b.mark.Put(newest)
}

// FirstIndex implements raft.LogStore.
func (b *markedBolt) FirstIndex() (uint64, error) { return b.bolt.FirstIndex() }

// LastIndex implements raft.LogStore.
func (b *markedBolt) LastIndex() (uint64, error) { return b.bolt.LastIndex() }

// GetLog implements raft.LogStore.
func (b *markedBolt) GetLog(index uint64, log *raft.Log) error { return b.bolt.GetLog(index, log) }

// StoreLog implements raft.LogStore.
func (b *markedBolt) StoreLog(log *raft.Log) error {
	return b.write(func() error { return b.bolt.StoreLog(log) })
}

// StoreLogs implements raft.LogStore.
func (b *markedBolt) StoreLogs(logs []*raft.Log) error {
	return b.write(func() error { return b.bolt.StoreLogs(logs) })
}

// DeleteRange implements raft.LogStore.
func (b *markedBolt) DeleteRange(lo, hi uint64) error {
	return b.write(func() error { return b.bolt.DeleteRange(lo, hi) })
}

// Set implements raft.StableStore.
func (b *markedBolt) Set(key, value []byte) error {
	return b.write(func() error { return b.bolt.Set(key, value) })
}

// SetAll implements stableBackend.
func (b *markedBolt) SetAll(pairs []pair) error {
	return b.write(func() error { return b.bolt.SetAll(pairs) })
}

// Get implements raft.StableStore.
func (b *markedBolt) Get(key []byte) ([]byte, error) { return b.bolt.Get(key) }

// SetUint64 implements raft.StableStore.
func (b *markedBolt) SetUint64(key []byte, value uint64) error {
	return b.write(func() error { return b.bolt.SetUint64(key, value) })
}

// GetUint64 implements raft.StableStore.
func (b *markedBolt) GetUint64(key []byte) (uint64, error) { return b.bolt.GetUint64(key) }

// Close implements io.Closer.
func (b *markedBolt) Close() error {
	return errors.Join(b.bolt.Close(), b.mark.Close(), b.file.Close())
}
