//go:build !wasip1

package node

import (
	"path/filepath"

	"github.com/idnode/idnode/cluster/store"
	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/etag/boltetag"
)

// etagFile is the name of the etag store in the data directory.
const etagFile = "etags.db"

// fileDamage are the errors of files in a data directory that mean damage. A file of another
// node is damage: the directory has lost its own.
var fileDamage = []error{
	store.ErrCorrupt, store.ErrMissing, store.ErrForeign, boltetag.ErrMissing, boltetag.ErrOtherNode,
}

// errForeign means that node.json and raft.db belong to two nodes.
var errForeign = store.ErrForeign

func openEtagFile(dir string, nodeID []byte, mustExist bool) (etag.Store, error) {
	store, err := boltetag.Open(filepath.Join(dir, etagFile), boltetag.Options{NodeID: nodeID, MustExist: mustExist})
	if err != nil {
		return nil, err
	}
	return store, nil
}
