package model

import "errors"

// Place counts entries of a log, and terms. Small worlds have small ones.
type Place interface{ uint8 | uint64 }

// Member is what decides about one member's steps, beside the entries of its log.
type Member[N Place] struct {
	Length  N // of its log
	Synced  N // so many of these entries are on disk
	Applied N
	Base    N // so many entries are in its snapshot
	Term    N
	Down    bool
	Leads   bool // as far as it knows
}

// Why a step is not allowed.
var (
	ErrTermBack    = errors.New("its term goes back")
	ErrDeletes     = errors.New("deletes what is applied")
	ErrDown        = errors.New("is down")
	ErrUncommitted = errors.New("applies what is not committed")
	ErrUnsynced    = errors.New("applies what is not on its disk")
	ErrAgain       = errors.New("applies an entry again")
	ErrSetsBack    = errors.New("installs a snapshot that sets its state back")
	ErrBeyond      = errors.New("has a snapshot of what is not committed")
)

// Hear has a member hear of a term. A leader of an earlier one no longer leads.
func (m *Member[N]) Hear(term N) error {
	if term < m.Term {
		return ErrTermBack
	}
	m.Term, m.Leads = term, false
	return nil
}

// Lead has a member lead its term.
func (m *Member[N]) Lead() { m.Leads = true }

// Put appends an entry.
func (m *Member[N]) Put() { m.Length++ }

// Sync has the whole log on disk.
func (m *Member[N]) Sync() { m.Synced = m.Length }

// Cut deletes the entries behind the first n.
func (m *Member[N]) Cut(n N) error {
	if n < m.Applied {
		return ErrDeletes
	}
	m.Length, m.Synced = n, min(m.Synced, n)
	return nil
}

// MayApply reports whether the entry with which n entries are applied may be.
func (m *Member[N]) MayApply(n, committed N) error {
	switch {
	case m.Down:
		return ErrDown
	case n <= m.Applied:
		return ErrAgain
	case n > committed:
		return ErrUncommitted
	case n > m.Synced:
		return ErrUnsynced
	}
	return nil
}

// Snapshot has a member have a snapshot of the first n entries on its disk.
func (m *Member[N]) Snapshot(n, committed N) error {
	if n > committed {
		return ErrBeyond
	}
	m.Base = max(m.Base, n)
	m.Length, m.Synced = max(m.Length, n), max(m.Synced, n)
	return nil
}

// Install has a member's state begin with that of a snapshot of the first n entries.
func (m *Member[N]) Install(n N) error {
	if n < m.Applied {
		return ErrSetsBack
	}
	m.Applied = n
	return nil
}

// Crash ends a member's process, and what is not on its disk is lost.
func (m *Member[N]) Crash() {
	m.Length, m.Applied = m.Synced, m.Base
	m.Down, m.Leads = true, false
}

// Start begins it again.
func (m *Member[N]) Start() { m.Down = false }

// End is where a log ends.
type End[N Place] struct{ Term, Length N }

// MayVote reports whether a voter may vote for a candidate: its log must not be newer.
func MayVote[N Place](candidate, voter End[N]) bool {
	if candidate.Term != voter.Term {
		return candidate.Term > voter.Term
	}
	return candidate.Length >= voter.Length
}

// MayCommit reports whether a leader may commit its log up to an entry that so many of
// the voters have on disk.
func MayCommit[N Place](leader, entry N, have, voters int) bool {
	return entry == leader && Majority(have, voters)
}

// Majority reports whether so many are more than half of the voters.
func Majority(have, voters int) bool { return 2*have > voters }
