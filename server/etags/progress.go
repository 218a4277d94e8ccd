package etags

import raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"

// Progress is the progress of this node's counter of one database. In JSON numbers are text,
// because a browser's numbers are exact only to 2^53.
type Progress struct {
	// Database is folded.
	Database string `json:"name"`
	// Last is the newest etag that was given; 0 if none was.
	Last uint64 `json:"last,string"`
	// Reserved is the end of the block that is reserved on disk.
	Reserved uint64 `json:"reserved,string"`
	// Ceiling is the cluster's ceiling for the counter; 0 before the first.
	Ceiling uint64 `json:"ceiling,string"`
}

// Progress returns that of this node's counters, in any order, with the ceilings that the state has.
func (k *Keeper) Progress(state *raftlogv1.EtagRecord) []Progress {
	last, reserved, ceilings := k.cfg.Counters.Last(), k.cfg.Counters.Reserved(), map[string]uint64{}
	for _, d := range state.GetCeilings() {
		ceilings[d.GetDatabase()] = d.GetCeiling()
	}
	own := make([]Progress, 0, len(reserved))
	for database, end := range reserved {
		own = append(own, Progress{Database: database, Last: last[database], Reserved: end, Ceiling: ceilings[database]})
	}
	return own
}
