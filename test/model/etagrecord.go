package model

import (
	"fmt"
	"maps"
)

// record is what the cluster has recorded of one node's etags.
type record struct {
	starts         uint64
	clean          bool
	ceilings, last Counters
}

// floors returns what the etags of a run that opened this disk must be above when it is
// compared with the record. It goes on exactly where it was if both have the same clean
// stop.
func (r *record) floors(opened EtagDisk) Counters {
	floors := Counters{}
	if !r.agrees(opened) {
		maps.Copy(floors, r.ceilings)
		for database, last := range r.last {
			floors[database] = max(floors[database], last)
		}
	}
	return floors
}

func (r *record) agrees(opened EtagDisk) bool {
	if !opened.Clean || !r.clean {
		return false
	}
	return within(opened.Values, r.last) && within(r.last, opened.Values)
}

// within reports whether all values of a are in b. One that is missing counts as 0.
func within(a, b Counters) bool {
	for database, value := range a {
		if b[database] != value {
			return false
		}
	}
	return true
}

func (r *record) raise(ceilings Counters) {
	if r.ceilings == nil {
		r.ceilings = Counters{}
	}
	for database, to := range ceilings {
		r.ceilings[database] = max(r.ceilings[database], to)
	}
}

// Announced has the cluster count a start of the node. It says how the one before ended: a
// clean stop counts for this start only. The node reads the rest from its own state.
func (e *Etags) Announced(start uint64, clean bool) error {
	if want := e.record.starts + 1; start != want {
		return fmt.Errorf("counts start %d of a node, after %d", start, want-1)
	}
	if clean != e.record.clean {
		return fmt.Errorf("says that start %d follows a clean stop: %t, and it was %t", start, clean, e.record.clean)
	}
	if e.views == nil {
		e.views = map[uint64]record{}
	}
	e.views[start] = record{starts: start, clean: clean, ceilings: maps.Clone(e.record.ceilings), last: maps.Clone(e.record.last)}
	e.record.starts, e.record.clean = start, false
	return nil
}

// Raised has the cluster raise ceilings of the node.
func (e *Etags) Raised(ceilings Counters) { e.record.raise(ceilings) }

// CleanStop has the cluster record a clean stop of a start, or a part of one. The node has
// it on its disk, and was compared with what the cluster knew before.
func (e *Etags) CleanStop(start uint64, last Counters, partial bool) error {
	if start != e.record.starts {
		return fmt.Errorf("records a clean stop of start %d in start %d", start, e.record.starts)
	}
	err := fmt.Errorf("records a clean stop of start %d at %v, which is on no disk", start, last)
	for i := range e.stops {
		if s := &e.stops[i]; s.after < start && within(last, s.last) {
			if err = e.wasCompared(s, start, last); err == nil {
				break
			}
		}
	}
	if err != nil {
		return err
	}
	e.record.raise(last)
	e.record.last = maps.Clone(e.record.last)
	if e.record.last == nil {
		e.record.last = Counters{}
	}
	maps.Copy(e.record.last, last)
	e.record.clean = !partial
	return nil
}

// wasCompared reports a clean stop below what the run must have begun above.
func (e *Etags) wasCompared(s *etagRun, start uint64, last Counters) error {
	for database, floor := range e.floors(s, start) {
		if at, told := last[database]; told && at < floor {
			return fmt.Errorf("records a clean stop of %s at %d, of a disk that was not compared with the ceiling of %d", database, at, floor)
		}
	}
	return nil
}
