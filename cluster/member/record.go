package member

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/raft"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/internal/dirfile"
	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/internal/syncdir"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// FileName is the name of the record's file in the data directory.
const FileName = "node.json"

// dirVersion is the version of the whole data directory's layout, which the record states.
// Version 1 was that of builds before the first release.
const dirVersion = 2

// Record is a data directory's record of its node.
//
// Invariant: ID never changes once the file exists, and ClusterID never changes once it
// is set, except by a recovery.
type Record struct {
	// ID is the node's Raft id.
	ID nodeid.ID `json:"id"`
	// Tag is the node's tag; empty until it is known.
	Tag string `json:"tag"`
	// ClusterID is the cluster's id, 16 bytes; empty until the node has one.
	ClusterID []byte `json:"-"`
	// Founder means that this node forms the cluster: it alone bootstraps Raft.
	Founder bool `json:"founder"`
	// Members are the last known members: the plan of the first start, later a copy of the
	// replicated table. A restarted node authenticates its peers and finds their addresses by
	// them until it has applied its log.
	Members []*raftlogv1.Member `json:"-"`
	// Hosts are the last IP addresses that the host names in Members were resolved to. The
	// map is never changed.
	Hosts map[string][]string `json:"hosts"`
	// TagConfirmed means that the cluster has confirmed the tag.
	TagConfirmed bool `json:"tag_confirmed"`
	// Removed means that the node was removed from the cluster.
	Removed bool `json:"removed"`
	// Recovering means that a recovery of the cluster was started and not finished: the node
	// must not start.
	Recovering bool `json:"recovering"`
	// Diverged says how the node's state differed from the cluster's; empty if it never did.
	// If it is set, the node must not start.
	Diverged string `json:"diverged"`
	// SetBack says which data others have seen and the data directory has lost; empty if
	// none. If it is set, the node must not start unless an operator trusts the directory:
	// its starts would soon have higher numbers than those that were seen.
	SetBack string `json:"set_back"`
	// Revision is the number of times the record was written.
	Revision uint64 `json:"revision"`
	// Unknown are the keys of a later program, which stay in the file.
	Unknown dirfile.Unknown `json:"-"`
}

// NewID returns a random id.
func NewID() (id nodeid.ID) {
	_, _ = rand.Read(id[:]) // rand.Read never fails.
	return id
}

// ServerID returns the Raft id of the member with these raw id bytes, which may come from a
// message: a wrong length gives an id that no node has.
func ServerID(raw []byte) raft.ServerID { return raft.ServerID(hex.EncodeToString(raw)) }

// InCluster reports whether the node belongs to a cluster.
func (r *Record) InCluster() bool { return len(r.ClusterID) > 0 }

func (r *Record) Clone() *Record {
	c := *r
	c.ClusterID = append([]byte(nil), r.ClusterID...)
	c.Members = cloneMembers(r.Members)
	return &c
}

func cloneMembers(members []*raftlogv1.Member) []*raftlogv1.Member {
	out := make([]*raftlogv1.Member, 0, len(members))
	for _, m := range members {
		out = append(out, proto.CloneOf(m))
	}
	return out
}

// document is the layout of the file, beside its checksum.
type document struct {
	Version   int    `json:"version"`
	ClusterID string `json:"cluster_id"`
	Record
	Members []json.RawMessage `json:"members"`
}

// Load reads the record of the data directory dir. The error wraps fs.ErrNotExist if there
// is no record, ErrCorrupt if it is damaged, and ErrOtherVersion if the directory is of
// another version. Keys of a later program do not make another version.
func Load(dir string) (*Record, error) {
	data, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		return nil, fmt.Errorf("member: reading node.json: %w", err)
	}
	r, err := decodeRecord(data)
	if err != nil {
		return nil, fmt.Errorf("member: %s: %w", filepath.Join(dir, FileName), err)
	}
	return r, nil
}

// Save writes the record into dir. A crash leaves either the old or the new record; the new
// record is durable when Save returns nil.
func (r *Record) Save(dir string) error {
	data, err := encodeRecord(r)
	if err != nil {
		return fmt.Errorf("member: encoding node.json: %w", err)
	}
	if err := writeAtomically(dir, FileName, data); err != nil {
		return fmt.Errorf("member: writing node.json: %w", err)
	}
	return nil
}

func encodeRecord(r *Record) ([]byte, error) {
	doc := document{Version: dirVersion, ClusterID: hex.EncodeToString(r.ClusterID), Record: *r, Members: []json.RawMessage{}}
	for _, m := range r.Members {
		raw, err := protojson.Marshal(m)
		if err != nil {
			return nil, err
		}
		doc.Members = append(doc.Members, raw)
	}
	data, err := dirfile.Encode(doc, r.Unknown)
	if err != nil {
		return nil, err
	}
	var indented bytes.Buffer
	err = json.Indent(&indented, append(data, '\n'), "", "  ")
	return indented.Bytes(), err
}

func decodeRecord(data []byte) (*Record, error) {
	var doc document
	unknown, err := dirfile.Decode(data, &doc)
	switch version := doc.Version; {
	case err == nil && version == dirVersion:
		return doc.record(unknown)
	case version != dirVersion && json.Valid(data) && !isOurs(data, version):
		whose, remedy := "a newer program", "start that one"
		if version < dirVersion {
			whose = "a program before the first release"
			remedy = "start that one, and move with its 'idnode export all.csv' and this one's 'idnode import all.csv' into a new cluster"
		}
		return nil, fmt.Errorf("%w: it is of version %d, of %s, and this program reads version %d; %s; or remove this member, empty the "+
			"directory and join under a new tag", ErrOtherVersion, version, whose, dirVersion, remedy)
	}
	return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
}

// isOurs reports whether the version alone is damaged.
func isOurs(data []byte, version int) bool {
	const key = `"version": %d`
	_, err := dirfile.Decode(bytes.Replace(data, fmt.Appendf(nil, key, version), fmt.Appendf(nil, key, dirVersion), 1), &document{})
	return err == nil
}

func (doc document) record(unknown dirfile.Unknown) (*Record, error) {
	r, err := doc.Record, error(nil)
	r.Unknown = unknown
	if r.ClusterID, err = hex.DecodeString(doc.ClusterID); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrCorrupt, err)
	}
	for _, raw := range doc.Members {
		m := &raftlogv1.Member{}
		// A field of a later program comes back with the replicated table.
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw, m); err != nil {
			return nil, fmt.Errorf("%w: %v", ErrCorrupt, err)
		}
		r.Members = append(r.Members, m)
	}
	return &r, nil
}

// writeAtomically replaces dir/name: the file is complete and on disk before it gets its
// name, and the name is on disk before the call returns. The draft of the next write stays, so
// that it needs no inode. One write runs at a time.
func writeAtomically(dir, name string, data []byte) error {
	draft := filepath.Join(dir, name+".tmp")
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	failpoint.Hit(failpoint.RecordBefore)
	if err := os.Rename(draft, filepath.Join(dir, name)); err != nil {
		return err
	}
	failpoint.Hit(failpoint.RecordAfter)
	_ = os.WriteFile(draft, nil, 0o600)
	return syncdir.Sync(dir)
}

// LoadOrCreate returns the record of dir, and writes a new record with a random id if the
// directory is empty. logFile is the name of Raft's store in dir: a directory that has one
// file without the other was partly emptied, and a node without its votes or its identity
// must not take part. Errors are those of Load, and ErrMismatch.
func LoadOrCreate(dir, logFile string) (*Record, error) {
	_, err := os.Stat(filepath.Join(dir, logFile))
	hasLog := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("member: %w", err)
	}
	r, err := Load(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && hasLog:
		return nil, fmt.Errorf("member: %w: %s has %s but no node.json, which names the node",
			ErrMismatch, dir, logFile)
	case errors.Is(err, fs.ErrNotExist):
		r = &Record{ID: NewID(), Revision: 1}
		return r, r.Save(dir)
	case err != nil:
		return nil, err
	case r.InCluster() && !hasLog:
		return nil, fmt.Errorf("member: %w: %s names the cluster %x, but %s, which holds the node's votes and log, is missing",
			ErrMismatch, filepath.Join(dir, FileName), r.ClusterID, logFile)
	}
	return r, nil
}

// SameMembers reports whether two tables are equal.
func SameMembers(a, b []*raftlogv1.Member) bool {
	return slices.EqualFunc(a, b, func(x, y *raftlogv1.Member) bool { return proto.Equal(x, y) })
}
