package series

import raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"

// Confirm, Void and Release are End for each of the states.
func (s *Series) Confirm(now int64, keys []*raftlogv1.SeriesKey) ([]*raftlogv1.SeriesNumber, error) {
	return s.End(now, &raftlogv1.SeriesEnd{State: uint32(Confirmed), Keys: keys})
}

func (s *Series) Void(now int64, keys []*raftlogv1.SeriesKey, reason string) ([]*raftlogv1.SeriesNumber, error) {
	return s.End(now, &raftlogv1.SeriesEnd{State: uint32(Voided), Keys: keys, Reason: reason})
}

func (s *Series) Release(now int64, keys []*raftlogv1.SeriesKey) ([]*raftlogv1.SeriesNumber, error) {
	return s.End(now, &raftlogv1.SeriesEnd{State: uint32(Released), Keys: keys})
}
