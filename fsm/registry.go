package fsm

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// ClusterID returns the id of the cluster, nil until it is formed.
func (s *State) ClusterID() []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return bytes.Clone(s.contents.clusterID)
}

// Members returns copies of all members, removed ones included, by tag.
func (s *State) Members() []*raftlogv1.Member {
	members, _ := s.Membership()
	return members
}

// Membership returns copies of all members, removed ones included, by tag, and the log
// index of the last change of what clients see of them: which there are, where their HTTP
// ports are, and which ones vote. It is 0 below StrictFormat, and the same in all states
// with the same members.
func (s *State) Membership() (members []*raftlogv1.Member, index uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	members = s.contents.members.sorted()
	for i, m := range members {
		members[i] = proto.CloneOf(m)
	}
	return members, s.contents.members.index
}

// Etags returns the cluster's record of a node's etags, by its Raft id; nil if there is
// none.
func (s *State) Etags(nodeID []byte) *raftlogv1.EtagState {
	node, ok := nodeIDOf(nodeID)
	s.mu.RLock()
	defer s.mu.RUnlock()
	e := s.contents.etags.byNode[node]
	if !ok || e == nil {
		return nil
	}
	return e.state()
}

// BootstrapOperation returns the operation that forms the cluster.
func BootstrapOperation(clusterID []byte, members []*raftlogv1.Member) []byte {
	b := &raftlogv1.Bootstrap{ClusterId: clusterID, Members: members}
	return encodeOperation(&raftlogv1.Operation{Op: &raftlogv1.Operation_Bootstrap{Bootstrap: b}})
}

// JoinOperation returns the operation that registers a new member. An empty tag asks for
// the next free one. principal is the caller's name; nil if there are no roles.
func JoinOperation(join *raftlogv1.MemberJoin, principal *string) []byte {
	return encodeOperation(&raftlogv1.Operation{Principal: principal, Op: &raftlogv1.Operation_MemberJoin{MemberJoin: join}})
}

// AnnounceOperation returns the operation that announces a member's start; its result
// holds the session, and the node's etags.
//
// A caller that may propose it twice makes it a KeyedOperation with a new random key for
// each start: otherwise the second one would count as another start, after an unclean
// stop.
func AnnounceOperation(m *raftlogv1.Member) []byte {
	announce := &raftlogv1.MemberAnnounce{Member: m}
	return encodeOperation(&raftlogv1.Operation{Op: &raftlogv1.Operation_MemberAnnounce{MemberAnnounce: announce}})
}

// PromoteOperation returns the operation that lets a member vote.
func PromoteOperation(id []byte) []byte {
	promote := &raftlogv1.MemberPromote{Id: id}
	return encodeOperation(&raftlogv1.Operation{Op: &raftlogv1.Operation_MemberPromote{MemberPromote: promote}})
}

// RemoveOperation returns the operation that removes the member with a tag. principal is
// the caller's name; nil if there are no roles. judged is the index of the only
// membership in which it is valid; 0 for any. See State.Membership.
func RemoveOperation(tag string, principal *string, judged uint64) []byte {
	remove := &raftlogv1.MemberRemove{Tag: tag, MembershipIndex: judged}
	return encodeOperation(&raftlogv1.Operation{Principal: principal, Op: &raftlogv1.Operation_MemberRemove{MemberRemove: remove}})
}

// FormatRaiseOperation returns the operation that raises the log format.
func FormatRaiseOperation(format uint32) []byte {
	raise := &raftlogv1.FormatRaise{Format: format}
	return encodeOperation(&raftlogv1.Operation{Op: &raftlogv1.Operation_FormatRaise{FormatRaise: raise}})
}

// KeyedOperation returns an operation without a request key as one with a key:
// proposed any number of times, it counts once, and has the same result each
// time.
func KeyedOperation(operation []byte, key [16]byte) []byte {
	return op.AppendRequest(bytes.Clone(operation), op.RequestKey{Key: key})
}

// encodeOperation encodes an operation. It fails only for text that is not UTF-8:
// members' addresses and tags come from a checked configuration.
func encodeOperation(o *raftlogv1.Operation) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("fsm: an operation cannot be encoded: %v", err))
	}
	return b
}

// DecodeResult decodes an operation's result. The error wraps ErrCorrupt.
func DecodeResult(b []byte) (*raftlogv1.Result, error) {
	r := &raftlogv1.Result{}
	if err := proto.Unmarshal(b, r); err != nil {
		return nil, corrupt("a result: %v", err)
	}
	return r, nil
}

// The functions above that build operations, as methods, so that an interface
// can ask for them.

// BootstrapOperation is the function of that name.
func (s *State) BootstrapOperation(clusterID []byte, members []*raftlogv1.Member) []byte {
	return BootstrapOperation(clusterID, members)
}

// JoinOperation is the function of that name.
func (s *State) JoinOperation(join *raftlogv1.MemberJoin, principal *string) []byte {
	return JoinOperation(join, principal)
}

// AnnounceOperation is the function of that name.
func (s *State) AnnounceOperation(m *raftlogv1.Member) []byte { return AnnounceOperation(m) }

// PromoteOperation is the function of that name.
func (s *State) PromoteOperation(id []byte) []byte { return PromoteOperation(id) }

// RemoveOperation is the function of that name.
func (s *State) RemoveOperation(tag string, principal *string, judged uint64) []byte {
	return RemoveOperation(tag, principal, judged)
}

// FormatRaiseOperation is the function of that name.
func (s *State) FormatRaiseOperation(format uint32) []byte { return FormatRaiseOperation(format) }

// KeyedOperation is the function of that name.
func (s *State) KeyedOperation(operation []byte, key [16]byte) []byte {
	return KeyedOperation(operation, key)
}

// DecodeResult is the function of that name.
func (s *State) DecodeResult(b []byte) (*raftlogv1.Result, error) { return DecodeResult(b) }
