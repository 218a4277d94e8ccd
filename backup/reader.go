package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/internal/crc32c"
	"github.com/idnode/idnode/internal/exactproto"
	"github.com/idnode/idnode/internal/wire"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// Reader reads one backup. Nothing that it returned may be relied on before Next
// has returned io.EOF: only then was the whole file checked.
type Reader struct {
	r       *bufio.Reader
	sum     hash.Hash
	header  *raftlogv1.BackupHeader
	body    bytes.Buffer
	records uint64
}

// NewReader reads the beginning of a backup. The error wraps ErrCorrupt or ErrNewer, or is r's.
func NewReader(r io.Reader) (*Reader, error) {
	in := &Reader{r: bufio.NewReaderSize(r, buffered), sum: sha256.New(), header: &raftlogv1.BackupHeader{}}
	begin := make([]byte, len(magic))
	if _, err := io.ReadFull(in.r, begin); err != nil {
		return nil, cutShort(err)
	}
	if string(begin) != magic {
		return nil, corrupt("it is no backup of idnode")
	}
	in.sum.Write(begin)
	body, err := in.frame()
	switch {
	case err != nil:
		return nil, err
	case body == nil:
		return nil, corrupt("it has no header")
	}
	if err := decode(body, in.header, "the header"); err != nil {
		return nil, err
	}
	switch {
	case in.header.GetFormat() > Format:
		return nil, newer("format %d, this program knows %d", in.header.GetFormat(), Format)
	case in.header.GetLogFormat() > raftlog.FormatVersion:
		return nil, newer("log format %d, this program knows %d", in.header.GetLogFormat(), raftlog.FormatVersion)
	case in.header.GetFormat() == 0:
		return nil, corrupt("its header has no format")
	}
	return in, nil
}

// decode decodes a frame. Its checksum is right, so it is as it was written.
func decode(body []byte, m proto.Message, what string) error {
	switch err := exactproto.Unmarshal(body, m); {
	case errors.Is(err, exactproto.ErrUnknownField):
		return newer("%s has %v", what, err)
	case err != nil:
		return corrupt("%s cannot be read: %v", what, err)
	}
	return nil
}

// Header returns the header; it must not be changed.
func (r *Reader) Header() *raftlogv1.BackupHeader { return r.header }

// Next returns the next record, and io.EOF once all were read and the file was found to be whole. Any
// other error wraps ErrCorrupt or ErrNewer, or is the underlying reader's. There is no call after an error.
func (r *Reader) Next() (*raftlogv1.SnapshotRecord, error) {
	body, err := r.frame()
	if err != nil {
		return nil, err
	}
	if body == nil {
		return nil, r.end(r.sum.Sum(nil))
	}
	m := &raftlogv1.SnapshotRecord{}
	if err := decode(body, m, fmt.Sprintf("record %d", r.records+1)); err != nil {
		return nil, err
	}
	r.records++
	return m, nil
}

// end reads the trailer, after which there is nothing.
func (r *Reader) end(sum []byte) error {
	body, err := r.frame()
	if err != nil {
		return err
	}
	t := &raftlogv1.BackupTrailer{}
	switch {
	case body == nil || exactproto.Unmarshal(body, t) != nil:
		return corrupt("its trailer cannot be read")
	case t.GetRecords() != r.records:
		return corrupt("it has %d records, its trailer says %d", r.records, t.GetRecords())
	case !bytes.Equal(t.GetSha256(), sum):
		return corrupt("its content is not what its trailer says")
	}
	if _, err := r.r.ReadByte(); !errors.Is(err, io.EOF) {
		return corrupt("something follows its end")
	}
	return io.EOF
}

// frame reads a frame's message, nil for a length of zero, which is not in the trailer's sum.
func (r *Reader) frame() ([]byte, error) {
	size, err := wire.ReadLength(r.r)
	if err != nil {
		return nil, cutShort(err)
	}
	if size > maxFrame {
		return nil, corrupt("a record of %d bytes", size)
	}
	length := binary.AppendUvarint(nil, size)
	var sum [4]byte
	if _, err := io.ReadFull(r.r, sum[:]); err != nil {
		return nil, cutShort(err)
	}
	// A length is not believed: memory is taken as the bytes come in.
	r.body.Reset()
	if _, err := io.CopyN(&r.body, r.r, int64(size)); err != nil {
		return nil, cutShort(err)
	}
	if crc32c.Sum(length, r.body.Bytes()) != binary.LittleEndian.Uint32(sum[:]) {
		return nil, corrupt("the checksum after record %d is wrong", r.records)
	}
	if size == 0 {
		return nil, nil
	}
	r.sum.Write(length)
	r.sum.Write(sum[:])
	r.sum.Write(r.body.Bytes())
	return r.body.Bytes(), nil
}

// cutShort is the error for a file that ends too early, or the reader's own.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return corrupt("it ends too early")
	}
	if errors.Is(err, wire.ErrLength) {
		return corrupt("%v", err)
	}
	return err
}

func newer(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNewer, fmt.Sprintf(format, args...))
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}
