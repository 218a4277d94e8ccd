package store

import (
	"errors"
	"os"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/idnode/idnode/internal/boltfile"
	"github.com/idnode/idnode/internal/disklock"
)

// markedBolt is a raft.db whose mark follows every transaction: an older copy of the
// file, without the newest votes, is detected at open.
type markedBolt struct {
	bolt *raftboltdb.BoltStore
	path string
	mark *boltfile.Mark
	// file is used to read the number of the newest transaction.
	file *os.File

	// writing is held during each write, so that the newest transaction in
	// the file is one that was acknowledged. bbolt writes one at a time anyway.
	writing disklock.Mutex
}

func openMarked(path string, noSync bool, mark *boltfile.Mark) (*markedBolt, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	bolt, err := openBolt(path, noSync)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &markedBolt{bolt: bolt, path: path, mark: mark, file: file, writing: disklock.New()}, nil
}

func (b *markedBolt) Set(key, value []byte) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	if err := boltfile.Trap(b.path, ErrCorrupt, func() error { return b.bolt.Set(key, value) }); err != nil {
		return err
	}
	newest, err := boltfile.NewestTx(b.file)
	if err != nil {
		return err
	}
	return b.mark.Put(newest)
}

func (b *markedBolt) Close() error {
	return errors.Join(b.bolt.Close(), b.mark.Close(), b.file.Close())
}
