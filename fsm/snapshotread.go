package fsm

import (
	"errors"
	"io"

	"github.com/idnode/idnode/backup"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// eachRecord calls f for each record of a snapshot, to its end. Decoding runs ahead of f, which is as much
// work again: a node that starts with millions of names serves no callers until it is done.
func eachRecord(in *backup.Reader, f func(*raftlogv1.SnapshotRecord) error) error {
	ahead, stop := make(chan []*raftlogv1.SnapshotRecord, batchesAhead), make(chan struct{})
	var failed error
	go func() {
		defer close(ahead)
		failed = decodeAhead(in, ahead, stop)
	}()
	for batch := range ahead {
		for _, m := range batch {
			if err := f(m); err != nil {
				close(stop)
				for range ahead {
					// The decoder ends before the reader is given back.
				}
				return err
			}
		}
	}
	return failed
}

// Records are passed in batches, at most this many ahead.
const recordBatch, batchesAhead = 512, 4

// decodeAhead sends records until the last, an error, or stop is closed.
func decodeAhead(in *backup.Reader, ahead chan<- []*raftlogv1.SnapshotRecord, stop <-chan struct{}) error {
	for {
		batch := make([]*raftlogv1.SnapshotRecord, 0, recordBatch)
		var err error
		for len(batch) < recordBatch && err == nil {
			var m *raftlogv1.SnapshotRecord
			if m, err = in.Next(); err == nil {
				batch = append(batch, m)
			}
		}
		select {
		case ahead <- batch:
		case <-stop:
			return nil
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
