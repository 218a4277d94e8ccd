package witness

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/idnode/idnode/internal/crc32c"
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
}

// document is the layout of a record. Checksum is the CRC-32C of the document with an empty
// Checksum.
type document struct {
	ClusterID string `json:"cluster_id"`
	Record
	Checksum string `json:"checksum"`
}

var errDamaged = errors.New("witness: the record is damaged")

// Encode returns the record's bytes.
func (r Record) Encode() []byte {
	doc := document{ClusterID: hex.EncodeToString(r.ClusterID), Record: r}
	doc.Checksum = doc.sum()
	return doc.json()
}

// Decode reads what Encode returned. A record of another cluster, or none, is empty.
func Decode(data, clusterID []byte) (Record, error) {
	if len(data) == 0 {
		return Record{}, nil
	}
	var doc document
	if err := json.Unmarshal(data, &doc); err != nil {
		return Record{}, fmt.Errorf("%w: %w", errDamaged, err)
	}
	of, err := hex.DecodeString(doc.ClusterID)
	switch {
	case err != nil || doc.sum() != doc.Checksum:
		return Record{}, errDamaged
	case !bytes.Equal(of, clusterID):
		return Record{}, nil
	}
	doc.Record.ClusterID = of
	return doc.Record, nil
}

func (d document) sum() string {
	d.Checksum = ""
	return fmt.Sprintf("%08x", crc32c.Sum(d.json()))
}

func (d document) json() []byte {
	data, _ := json.Marshal(d) // Numbers and text alone: it does not fail.
	return data
}
