package raftlog

import (
	"fmt"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Status is the outcome of a group. Its values are those of the message GroupResult, and
// are on the wire.
type Status uint8

const (
	// Applied means the group's operations ran, now or at an earlier sending.
	Applied Status = iota + 1
	// StaleSession means nothing was done: the session is not the origin's newest, or the
	// origin is not a member. The outcome of an earlier sending of the group is unknown.
	StaleSession
	// StaleSequence means nothing was done: the origin acknowledged the group before, or
	// it is too far ahead of what the origin acknowledged. The outcome of an earlier
	// sending is unknown.
	StaleSequence
)

// String returns "applied", "stale session" or "stale sequence".
func (s Status) String() string {
	switch s {
	case Applied:
		return "applied"
	case StaleSession:
		return "stale session"
	case StaleSequence:
		return "stale sequence"
	default:
		return fmt.Sprintf("status %d", uint8(s))
	}
}

// GroupResult is the outcome of a group.
type GroupResult struct {
	Status Status
	// Results are the encoded results, one per operation, in order; empty unless the
	// group was applied. They are shared and must not be changed.
	Results [][]byte
}

// GroupResultToProto returns r as a message. The message shares r's results.
func GroupResultToProto(r GroupResult) *raftlogv1.GroupResult {
	return &raftlogv1.GroupResult{
		Status:  raftlogv1.GroupResult_Status(r.Status),
		Results: r.Results,
	}
}

// GroupResultFromProto returns the GroupResult in m, sharing its results. The
// error wraps ErrCorrupt: m has a status that is none.
func GroupResultFromProto(m *raftlogv1.GroupResult) (GroupResult, error) {
	status := m.GetStatus()
	if status < raftlogv1.GroupResult_Status(Applied) || status > raftlogv1.GroupResult_Status(StaleSequence) {
		return GroupResult{}, corrupt("group result with status %d", status)
	}
	return GroupResult{Status: Status(status), Results: m.GetResults()}, nil
}
