package member

import (
	"errors"
	"fmt"

	"github.com/idnode/idnode/internal/dirfile"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// The reasons for which a node cannot be a member, or not under this identity. All are
// permanent.
var (
	ErrCorrupt      = errors.New("node.json is damaged")
	ErrOtherVersion = dirfile.ErrOtherVersion
	// ErrMismatch means the files of the data directory do not belong together.
	ErrMismatch = errors.New("the data directory is incomplete")
	// ErrTagTaken means the cluster knows the node's tag under another Raft id.
	ErrTagTaken = errors.New("the tag belongs to another data directory")
	// ErrJoinDenied means that the node has neither the right to join nor a token.
	ErrJoinDenied = errors.New("the cluster does not let this node in")
	// ErrNotInCluster means the cluster exists and does not know the node.
	ErrNotInCluster = errors.New("the cluster exists already and does not know this node")
	ErrOtherCluster = errors.New("the nodes listed belong to another cluster")
	// ErrTooOld also concerns a node whose configuration (max-log-format) holds it at an older one.
	ErrTooOld    = errors.New("the cluster writes a newer log format than this node reads")
	ErrTakenBack = errors.New("the leader's log contradicts what this node knows to be committed: the data of this node or of others was " +
		"set back to an older copy (compare the nodes' counters before one is rebuilt)")
	// ErrDiverged: both applied the same log.
	ErrDiverged = errors.New("this node's state differs from the cluster's")
	// ErrSetBack means that the data directory is an older copy of itself: other nodes, or
	// the directory's own records, know of data that it has not.
	ErrSetBack = errors.New("the data directory was set back to an older copy")
	// ErrOtherNode means that the node was started under another tag than the data
	// directory's.
	ErrOtherNode = errors.New("a tag belongs to one data directory permanently")
	ErrRemoved   = errors.New("this node was removed from the cluster")
)

func tagTaken(owner *raftlogv1.Member) error {
	if owner.GetRemoved() {
		return fmt.Errorf("%w: %s was removed, and its tag is never given again; start with --join, and under a new --tag or none",
			ErrTagTaken, owner.GetTag())
	}
	return fmt.Errorf("%w: the cluster knows tag %s under the Raft id %s; if that node lost its data, remove the old member (idnode "+
		"cluster remove %[2]s) and join under a new tag (idnode serve --join …)",
		ErrTagTaken, owner.GetTag(), ServerID(owner.GetId()))
}

// denied reports whether err means that the peer does not let the caller in. The errors of calls
// to peers have this method.
func denied(err error) bool {
	var e interface{ Denied() bool }
	return errors.As(err, &e) && e.Denied()
}
