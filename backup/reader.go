package backup

import (
	"bufio"
	"bytes"
	"cmp"
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

// Reader reads one file. Its results are valid only once Next has returned io.EOF: only then was
// the whole file checked.
type Reader struct {
	kind    FileKind
	r       *bufio.Reader
	sum     hash.Hash
	header  *raftlogv1.BackupHeader // of a backup
	body    bytes.Buffer
	records uint64
}

// NewReader reads the beginning of a backup. The error wraps ErrCorrupt, ErrOlder or ErrNewer, or is r's.
func NewReader(r io.Reader) (*Reader, error) {
	header := &raftlogv1.BackupHeader{}
	in, err := backups.NewReader(r, header)
	if header.GetFormat() > 0 && header.GetFormat() < Format {
		return nil, fmt.Errorf("%w (%s, log format %d)", ErrOlder, cmp.Or(header.GetVersion(), "no version"), header.GetLogFormat())
	}
	if err != nil {
		return nil, err
	}
	in.header = header
	switch {
	case header.GetFormat() > Format:
		return nil, backups.newer("format %d, this program supports %d", header.GetFormat(), Format)
	case header.GetLogFormat() > raftlog.FormatVersion:
		return nil, backups.newer("log format %d, this program supports %d", header.GetLogFormat(), raftlog.FormatVersion)
	case header.GetFormat() == 0:
		return nil, backups.corrupt("its header has no format")
	}
	return in, nil
}

// NewReader reads the beginning of a file, and decodes its header into the given message. With the error
// of a newer release's file the message has the fields that this release knows.
func (k FileKind) NewReader(r io.Reader, header proto.Message) (*Reader, error) {
	in := &Reader{kind: k, r: bufio.NewReaderSize(r, buffered), sum: sha256.New()}
	begin := make([]byte, len(k.magic()))
	n, err := io.ReadFull(in.r, begin)
	ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if (err == nil || ended) && (n == 0 || !bytes.HasPrefix(k.magic(), begin[:n])) {
		return nil, foreign{k}
	}
	if err != nil {
		return nil, k.cutShort(err)
	}
	in.sum.Write(begin)
	body, err := in.frame()
	switch {
	case err != nil:
		return nil, err
	case body == nil:
		return nil, k.corrupt("it has no header")
	}
	return in, k.decode(body, header, 0)
}

// decode decodes the frame of a record, or with 0 of the header. Its checksum is right, so it is as it was written.
func (k FileKind) decode(body []byte, m proto.Message, record uint64) error {
	err := exactproto.Unmarshal(body, m)
	if err == nil {
		return nil
	}
	what := "the header"
	if record > 0 {
		what = fmt.Sprintf("record %d", record)
	}
	if errors.Is(err, exactproto.ErrUnknownField) {
		return k.newer("%s has %v", what, err)
	}
	return k.corrupt("%s cannot be read: %v", what, err)
}

// Header returns the header of a backup; it must not be changed.
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
	if err := r.kind.decode(body, m, r.records+1); err != nil {
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
		return r.kind.corrupt("its trailer cannot be read")
	case t.GetRecords() != r.records:
		return r.kind.corrupt("it has %d records, its trailer says %d", r.records, t.GetRecords())
	case !bytes.Equal(t.GetSha256(), sum):
		return r.kind.corrupt("its content does not match its trailer")
	}
	if _, err := r.r.ReadByte(); !errors.Is(err, io.EOF) {
		return r.kind.corrupt("something follows its end")
	}
	return io.EOF
}

// frame reads a frame's message, nil for a length of zero, which is not in the trailer's sum.
func (r *Reader) frame() ([]byte, error) {
	size, err := wire.ReadLength(r.r)
	if err != nil {
		return nil, r.kind.cutShort(err)
	}
	if size > maxFrame {
		return nil, r.kind.corrupt("a record of %d bytes", size)
	}
	length := binary.AppendUvarint(nil, size)
	var sum [4]byte
	if _, err := io.ReadFull(r.r, sum[:]); err != nil {
		return nil, r.kind.cutShort(err)
	}
	// A length is not believed: memory is taken as the bytes come in.
	r.body.Reset()
	if _, err := io.CopyN(&r.body, r.r, int64(size)); err != nil {
		return nil, r.kind.cutShort(err)
	}
	if crc32c.Sum(length, r.body.Bytes()) != binary.LittleEndian.Uint32(sum[:]) {
		return nil, r.kind.corrupt("the checksum after record %d is wrong", r.records)
	}
	if size == 0 {
		return nil, nil
	}
	r.sum.Write(length)
	r.sum.Write(sum[:])
	r.sum.Write(r.body.Bytes())
	return r.body.Bytes(), nil
}
