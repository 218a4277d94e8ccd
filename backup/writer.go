package backup

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/internal/crc32c"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Writer writes one file. After the first error it writes nothing more, and
// every method returns that error.
type Writer struct {
	w       *bufio.Writer
	sum     hash.Hash
	head    []byte // of the frame being written
	body    []byte
	records uint64
	err     error
}

// NewWriter begins a backup. The header's format is set to Format.
func NewWriter(w io.Writer, header *raftlogv1.BackupHeader) (*Writer, error) {
	header.Format = Format
	return backups.NewWriter(w, header)
}

// NewWriter begins a file.
func (k FileKind) NewWriter(w io.Writer, header proto.Message) (*Writer, error) {
	out := &Writer{w: bufio.NewWriterSize(w, buffered), sum: sha256.New()}
	out.write(k.magic())
	out.frame(header)
	return out, out.err
}

// Record writes one record of the state.
func (w *Writer) Record(m *raftlogv1.SnapshotRecord) error {
	w.frame(m)
	w.records++
	return w.err
}

// Close writes the end. The file is whole only if it returns nil.
func (w *Writer) Close() error {
	trailer := &raftlogv1.BackupTrailer{Records: w.records, Sha256: w.sum.Sum(nil)}
	w.write(binary.LittleEndian.AppendUint32([]byte{0}, crc32c.Sum([]byte{0}))) // The end of the records.
	w.frame(trailer)
	if w.err == nil {
		w.err = w.w.Flush()
	}
	return w.err
}

// frame writes a message after its length and checksum.
func (w *Writer) frame(m proto.Message) {
	body, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(w.body[:0], m)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.body = body
	w.head = binary.AppendUvarint(w.head[:0], uint64(len(body)))
	w.head = binary.LittleEndian.AppendUint32(w.head, crc32c.Sum(w.head, body))
	w.write(w.head)
	w.write(body)
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	w.sum.Write(b) // It never fails.
	_, w.err = w.w.Write(b)
}

// Counted counts the written bytes of a file, complete or not.
type Counted struct {
	io.Writer
	Bytes int64
}

func (c *Counted) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.Bytes += int64(n)
	return n, err
}
