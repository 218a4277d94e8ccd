package backup_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/backup"
	"github.com/idnode/idnode/internal/crc32c"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// write returns a backup with so many identities.
func write(t testing.TB, identities int) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := backup.NewWriter(&file, &raftlogv1.BackupHeader{ClusterId: bytes.Repeat([]byte{7}, 16), LogIndex: 42, NodeTag: "A"})
	if err != nil {
		t.Fatal(err)
	}
	must := func(m *raftlogv1.SnapshotRecord) {
		if err := w.Record(m); err != nil {
			t.Fatal(err)
		}
	}
	must(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Database{Database: "db"}})
	for i := range identities {
		must(identity(i))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func identity(i int) *raftlogv1.SnapshotRecord {
	m := &raftlogv1.IdentityRecord{Name: fmt.Sprintf("name%d", i), Last: int64(i)}
	return &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Identity{Identity: m}}
}

// read reads a whole backup.
func read(file []byte) (*raftlogv1.BackupHeader, []*raftlogv1.SnapshotRecord, error) {
	r, err := backup.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, nil, err
	}
	var records []*raftlogv1.SnapshotRecord
	for {
		m, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r.Header(), records, nil
		}
		if err != nil {
			return nil, nil, err
		}
		records = append(records, m)
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	header, records, err := read(write(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	if header.GetLogIndex() != 42 || header.GetNodeTag() != "A" || header.GetFormat() != backup.Format {
		t.Errorf("header %v", header)
	}
	if len(records) != 4 || !proto.Equal(records[3], identity(2)) {
		t.Errorf("records %v", records)
	}
}

func TestEveryFlippedBitIsFound(t *testing.T) {
	file := write(t, 5)
	for i := range file {
		for bit := range 8 {
			damaged := bytes.Clone(file)
			damaged[i] ^= 1 << bit
			if _, _, err := read(damaged); !errors.Is(err, backup.ErrCorrupt) {
				t.Fatalf("bit %d of byte %d of %d: %v", bit, i, len(file), err)
			}
		}
	}
}

func TestEveryTruncationIsFound(t *testing.T) {
	file := write(t, 5)
	for size := range len(file) {
		if _, _, err := read(file[:size]); !errors.Is(err, backup.ErrCorrupt) {
			t.Fatalf("the first %d of %d bytes: %v", size, len(file), err)
		}
	}
}

// Frames that are whole by themselves may still be of another place or file.
func TestPiecesOfOtherBackupsAreFound(t *testing.T) {
	file, longer := write(t, 5), write(t, 6)
	at := bytes.Index(longer, []byte("name5"))
	for name, damaged := range map[string][]byte{
		"something follows":  append(bytes.Clone(file), 0),
		"two in one":         append(bytes.Clone(file), file...),
		"a record too few":   append(bytes.Clone(longer[:at-9]), longer[at+7:]...),
		"not a backup":       []byte("idnode snapshot\n"),
		"empty":              nil,
		"end of another one": append(bytes.Clone(longer[:len(longer)-46]), file[len(file)-46:]...),
	} {
		if _, _, err := read(damaged); !errors.Is(err, backup.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestANewerFileIsToldFromADamagedOne: none of it is restored in part.
func TestANewerFileIsToldFromADamagedOne(t *testing.T) {
	unknown := func(m proto.Message) { m.ProtoReflect().SetUnknown([]byte{0xfa, 0x06, 0}) } // Field 111.
	for name, change := range map[string]func(*raftlogv1.BackupHeader, *raftlogv1.SnapshotRecord){
		"a log format":          func(h *raftlogv1.BackupHeader, _ *raftlogv1.SnapshotRecord) { h.LogFormat = raftlog.FormatVersion + 1 },
		"a field of the header": func(h *raftlogv1.BackupHeader, _ *raftlogv1.SnapshotRecord) { unknown(h) },
		"a kind of record": func(_ *raftlogv1.BackupHeader, m *raftlogv1.SnapshotRecord) {
			m.Record = nil
			unknown(m)
		},
		"a field of a record": func(_ *raftlogv1.BackupHeader, m *raftlogv1.SnapshotRecord) { unknown(m.GetHilo()) },
		"a field deep in one": func(_ *raftlogv1.BackupHeader, m *raftlogv1.SnapshotRecord) { unknown(m.GetHilo().GetOutstanding()[0]) },
	} {
		header := &raftlogv1.BackupHeader{LogFormat: raftlog.FormatVersion}
		m := &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Hilo{Hilo: &raftlogv1.HiLoRecord{
			Tag: "orders", Max: 32, Outstanding: []*raftlogv1.OutstandingRange{{Low: 1, High: 32}},
		}}}
		change(header, m)
		var file bytes.Buffer
		w, err := backup.NewWriter(&file, header)
		if err == nil {
			err = errors.Join(w.Record(m), w.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := read(file.Bytes()); !errors.Is(err, backup.ErrNewer) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnOlderFileIsToldFromANewerOne: programs before the first release had other log formats under the same
// and under greater numbers.
func TestAnOlderFileIsToldFromANewerOne(t *testing.T) {
	for format := range uint32(4) {
		file := replaceHeader(t, write(t, 1), &raftlogv1.BackupHeader{Format: 1, LogFormat: format, Version: "v0.0.0-old"})
		_, _, err := read(file)
		if !errors.Is(err, backup.ErrOlder) || strings.Contains(err.Error(), "newer") || !strings.Contains(err.Error(), "v0.0.0-old") {
			t.Errorf("log format %d: %v", format, err)
		}
	}
}

// replaceHeader returns a file with another header.
func replaceHeader(t *testing.T, file []byte, h *raftlogv1.BackupHeader) []byte {
	t.Helper()
	body, err := proto.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	magic := []byte("idnode backup\n")
	size, n := binary.Uvarint(file[len(magic):])
	length := binary.AppendUvarint(nil, uint64(len(body)))
	header := binary.LittleEndian.AppendUint32(slices.Concat(magic, length), crc32c.Sum(length, body))
	return slices.Concat(header, body, file[len(magic)+n+4+int(size):])
}

// TestAnotherFileIsNamedSo, not as a damaged backup.
func TestAnotherFileIsNamedSo(t *testing.T) {
	for text, want := range map[string]string{
		"": "it is no backup of idnode", "localhost\n": "it is no backup of idnode", "idnode snapshot\n": "it is no backup of idnode",
		"idnode ba": "the backup is damaged: it ends too early",
	} {
		if _, _, err := read([]byte(text)); err == nil || err.Error() != want || !errors.Is(err, backup.ErrCorrupt) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestDamageAtRandom has several wounds at a time, in a file of many records.
func TestDamageAtRandom(t *testing.T) {
	file := write(t, 2000)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		damaged := bytes.Clone(file)
		for range 1 + random.IntN(20) {
			damaged[random.IntN(len(damaged))] ^= byte(1 + random.IntN(255))
		}
		if bytes.Equal(damaged, file) {
			continue
		}
		if _, _, err := read(damaged); !errors.Is(err, backup.ErrCorrupt) {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(write(f, 2))
	f.Fuzz(func(t *testing.T, file []byte) {
		header, records, err := read(file)
		if err != nil {
			return
		}
		// A file that is accepted is the file that a Writer writes of its content.
		var again bytes.Buffer
		w, err := backup.NewWriter(&again, header)
		for _, m := range records {
			err = errors.Join(err, w.Record(m))
		}
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
	})
}
