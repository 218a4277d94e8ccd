package member

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/idnode/idnode/internal/crc32c"
	"github.com/idnode/idnode/internal/nodeid"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

func testID(b byte) nodeid.ID { return nodeid.ID(bytes.Repeat([]byte{b}, nodeid.Size)) }

func testMember(tag string, b byte) *raftlogv1.Member {
	id := testID(b)
	return &raftlogv1.Member{Id: id.Bytes(), Tag: tag, GrpcAddress: tag + ":7400", RaftAddress: tag + ":7401", LogFormat: 1}
}

func testRecord() *Record {
	return &Record{
		ID: testID(1), Tag: "A", ClusterID: bytes.Repeat([]byte{7}, ClusterIDSize), Founder: true, TagConfirmed: true,
		Diverged: "a hash", SetBack: "a log",
		Members: []*raftlogv1.Member{testMember("A", 1), testMember("B", 2)},
	}
}

func TestRecordRoundTrip(t *testing.T) {
	dir := t.TempDir()
	want := testRecord()
	for range 3 { // Saving over an older one is what usually happens.
		if err := want.Save(dir); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("record differs (-want +got):\n%s", diff)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the directory holds %v (%v), want only the record and the next draft", entries, err)
	}
}

// TestALaterProgramsRecordIsRead: a later program writes keys that this one does not know, of the node and of its
// members. Those of the node stay when this program writes the record. The file is what a program writes today.
func TestALaterProgramsRecordIsRead(t *testing.T) {
	const later = `{
  "version": 2, "cluster_id": "", "id": "01010101010101010101010101010101", "tag": "A", "founder": true, "tag_confirmed": false,
  "removed": false, "revision": 7, "members": [{"tag": "A", "logFormat": 1, "since": "2027"}], "zone": {"name": "<a>", "rank": 3},
  "checksum": "CHECKSUM"
}`
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(strings.Replace(later, "CHECKSUM", "", 1))); err != nil {
		t.Fatal(err)
	}
	data := strings.Replace(later, "CHECKSUM", fmt.Sprintf("%08x", crc32c.Sum(compact.Bytes())), 1)
	got, err := decodeRecord([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	if got.Tag != "A" || got.Revision != 7 || got.Members[0].GetTag() != "A" {
		t.Errorf("read as %+v", got)
	}
	got = got.Clone()
	got.Diverged = "a hash"
	again, err := encodeRecord(got)
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(again, &keys); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"name": "<a>", "rank": 3.0}, keys["zone"]); diff != "" || keys["diverged"] != "a hash" {
		t.Errorf("written as %s", again)
	}
}

// TestRecordDamage changes every byte of the file: what is read is the same
// record, or an error.
func TestRecordDamage(t *testing.T) {
	data, err := encodeRecord(testRecord())
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		damaged := bytes.Clone(data)
		damaged[i] ^= 0x04
		got, err := decodeRecord(damaged)
		if err == nil && cmp.Diff(testRecord(), got, protocmp.Transform()) != "" {
			t.Fatalf("byte %d changed from %q to %q: read as another record", i, data[i], damaged[i])
		}
	}
	for i := range len(data) - 2 {
		if _, err := decodeRecord(data[:i]); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut off after %d bytes: %v, want ErrCorrupt", i, err)
		}
	}
}

func TestLoadOrCreate(t *testing.T) {
	withCluster := testRecord()
	without := &Record{ID: testID(3)}
	tests := []struct {
		name   string
		record *Record
		hasLog bool
		want   error
	}{
		{"empty directory", nil, false, nil},
		{"log without record", nil, true, ErrMismatch},
		{"first start was cut short", without, false, nil},
		{"no cluster yet", without, true, nil},
		{"member", withCluster, true, nil},
		{"member that lost its log", withCluster, false, ErrMismatch},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.record != nil {
				if err := tt.record.Save(dir); err != nil {
					t.Fatal(err)
				}
			}
			if tt.hasLog {
				if err := os.WriteFile(filepath.Join(dir, "raft.db"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := LoadOrCreate(dir, "raft.db")
			if !errors.Is(err, tt.want) {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
			if err != nil {
				return
			}
			again, err := LoadOrCreate(dir, "raft.db")
			if err != nil || again.ID != got.ID {
				t.Errorf("opened again: id %v (%v), want %v", again, err, got.ID)
			}
			if tt.record != nil && got.ID != tt.record.ID {
				t.Errorf("id %v, want %v", got.ID, tt.record.ID)
			}
		})
	}
}

func TestLoadOfNothing(t *testing.T) {
	if _, err := Load(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want fs.ErrNotExist", err)
	}
}

func FuzzRecord(f *testing.F) {
	data, err := encodeRecord(testRecord())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeRecord(data)
		if err != nil {
			return
		}
		again, err := encodeRecord(r)
		if err != nil {
			t.Fatalf("a record that was read cannot be written: %v", err)
		}
		if _, err := decodeRecord(again); err != nil {
			t.Fatalf("a record that was written cannot be read: %v", err)
		}
	})
}

// TestADirectoryOfAnotherVersionIsRefused: the directory of a build before the first release,
// whose record has other checksums, that of a later program, and a file that is no record.
func TestADirectoryOfAnotherVersionIsRefused(t *testing.T) {
	data, err := encodeRecord(testRecord())
	if err != nil {
		t.Fatal(err)
	}
	ours := []byte(`"version": 2`)
	if !bytes.Contains(data, ours) {
		t.Fatalf("no version: %s", data)
	}
	later := bytes.Replace(data, []byte(`"tag": "A"`), []byte(`"tag": "E"`), 1)
	for name, tt := range map[string]struct {
		data []byte
		want error
		says string
	}{
		"a build before the first release": {[]byte(`{"version": 1, "id": "01", "members": [], "checksum": "ee0fd3ff", "revision": 1, "seal": "ca7e0000"}`), ErrOtherVersion, "export"},
		"a later program":                  {bytes.Replace(later, ours, []byte(`"version": 3`), 1), ErrOtherVersion, "a newer program"},
		"a file without a version":         {[]byte("{}"), ErrOtherVersion, "before the first release"},
		"a damaged version":                {bytes.Replace(data, ours, []byte(`"version": 3`), 1), ErrCorrupt, ""},
		"damage beside the version":        {later, ErrCorrupt, ""},
	} {
		_, err := decodeRecord(tt.data)
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) || tt.says == "export" && strings.Contains(err.Error(), "newer") {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}
