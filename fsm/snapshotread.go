package fsm

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/internal/crc32c"
	"github.com/idnode/idnode/internal/exactproto"
	"github.com/idnode/idnode/internal/wire"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// maxFrame bounds a message in a snapshot. The largest hold the results of a group. A length is
// not trusted: memory is allocated as bytes arrive.
const maxFrame = 1 << 30

type snapshotReader struct {
	r       *bufio.Reader
	buf     bytes.Buffer // of the frame being read
	crc     uint32
	records uint64
}

func newSnapshotReader(r io.Reader) *snapshotReader {
	return &snapshotReader{r: bufio.NewReaderSize(r, snapshotBuffer)}
}

// header reads what comes before the records.
func (r *snapshotReader) header(maxFormat uint32) (*raftlogv1.SnapshotHeader, error) {
	magic := make([]byte, len(snapshotMagic))
	if _, err := io.ReadFull(r.r, magic); err != nil {
		return nil, cutShort(err)
	}
	if string(magic) != snapshotMagic {
		return nil, corrupt("not a snapshot")
	}
	r.crc = crc32c.Sum(magic)
	h := &raftlogv1.SnapshotHeader{}
	_, err := r.frame(h)
	if err != nil && !errors.Is(err, exactproto.ErrUnknownField) {
		return nil, err
	}
	// The format comes first: a newer release may have added fields, and its snapshot is
	// too new, not damaged.
	return h, cmp.Or(checkHeader(h, maxFormat), err)
}

// eachRecord calls f for each record, up to the length of zero that ends them. Decoding
// runs ahead of f, which is as much work again: a node that starts with millions of names
// serves no callers until it is done.
func (r *snapshotReader) eachRecord(f func(*raftlogv1.SnapshotRecord) error) error {
	ahead, stop := make(chan []*raftlogv1.SnapshotRecord, batchesAhead), make(chan struct{})
	var failed error
	go func() {
		defer close(ahead)
		failed = r.decodeAhead(ahead, stop)
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
			r.records++
		}
	}
	return failed
}

// Records are passed in batches, at most this many ahead.
const recordBatch, batchesAhead = 512, 4

// decodeAhead sends records until the last one, an error, or stop is closed.
func (r *snapshotReader) decodeAhead(ahead chan<- []*raftlogv1.SnapshotRecord, stop <-chan struct{}) error {
	for more := true; more; {
		batch := make([]*raftlogv1.SnapshotRecord, 0, recordBatch)
		var err error
		for len(batch) < recordBatch && more && err == nil {
			m := &raftlogv1.SnapshotRecord{}
			if more, err = r.frame(m); err == nil && more {
				batch = append(batch, m)
			}
		}
		select {
		case ahead <- batch:
		case <-stop:
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// trailer reads the trailer after the records. Nothing may follow it.
func (r *snapshotReader) trailer() error {
	crc := r.crc
	t := &raftlogv1.SnapshotTrailer{}
	if _, err := r.frame(t); err != nil {
		return err
	}
	if t.GetChecksum() != crc {
		return corrupt("checksum %08x, the trailer says %08x", crc, t.GetChecksum())
	}
	if t.GetRecords() != r.records {
		return corrupt("%d records, the trailer says %d", r.records, t.GetRecords())
	}
	if _, err := r.r.ReadByte(); !errors.Is(err, io.EOF) {
		return corrupt("something follows the trailer")
	}
	return nil
}

// frame reads a message without unknown fields after its length; false for a length of
// zero, which is not taken into the checksum.
func (r *snapshotReader) frame(m proto.Message) (bool, error) {
	size, err := wire.ReadLength(r.r)
	switch {
	case err != nil:
		return false, cutShort(err)
	case size > maxFrame:
		return false, corrupt("a frame of %d bytes", size)
	case size == 0:
		return false, nil
	}
	r.buf.Reset()
	if _, err := io.CopyN(&r.buf, r.r, int64(size)); err != nil {
		return false, cutShort(err)
	}
	r.crc = crc32c.Update(r.crc, protowire.AppendVarint(nil, size), r.buf.Bytes())
	if err := exactproto.Unmarshal(r.buf.Bytes(), m); err != nil {
		return false, fmt.Errorf("%w: a frame: %w", ErrCorrupt, err)
	}
	return true, nil
}

// cutShort is the error for a snapshot that ends too early, or the reader's own.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return corrupt("it ends too early")
	}
	if errors.Is(err, wire.ErrLength) {
		return corrupt("%v", err)
	}
	return err
}
