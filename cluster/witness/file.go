package witness

import (
	"encoding/hex"
	"fmt"

	"github.com/idnode/idnode/internal/dirfile"
)

// Record is what a node stores of its witness periodically. It may be lost, or old: then
// less is detected.
type Record struct {
	// ClusterID is the record's cluster; after a recovery of the cluster the record is
	// void.
	ClusterID []byte `json:"-"`
	// Committed is an index that this node knew to be committed.
	Committed uint64 `json:"committed"`
	// Members is what is known of others, by Raft id.
	Members map[string]Seen `json:"members"`
	// Unknown are the keys of a later program, which stay in the record.
	Unknown dirfile.Unknown `json:"-"`
}

// document is the layout of a record, beside its checksum.
type document struct {
	ClusterID string `json:"cluster_id"`
	Record
}

// Encode returns the record's bytes.
func (r Record) Encode() []byte {
	data, _ := dirfile.Encode(document{hex.EncodeToString(r.ClusterID), r}, r.Unknown) // Numbers and text alone: it does not fail.
	return data
}

// Decode reads what Encode returned. A record of another cluster, or none, is empty.
func Decode(data, clusterID []byte) (Record, error) {
	if len(data) == 0 {
		return Record{}, nil
	}
	var doc document
	unknown, err := dirfile.Decode(data, &doc)
	if err != nil {
		return Record{}, fmt.Errorf("witness: the record is damaged: %w", err)
	}
	if doc.ClusterID != hex.EncodeToString(clusterID) {
		return Record{}, nil
	}
	doc.Record.ClusterID, doc.Unknown = clusterID, unknown
	return doc.Record, nil
}
