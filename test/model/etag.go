package model

import (
	"errors"
	"fmt"
	"maps"
)

// Counters are etags by database.
type Counters map[string]uint64

// EtagDisk is what a node's disk says of its etags: the ends of the reserved blocks, or,
// after a clean stop, the last etags used.
type EtagDisk struct {
	Clean  bool
	Values Counters
}

func (d EtagDisk) equal(o EtagDisk) bool { return d.Clean == o.Clean && maps.Equal(d.Values, o.Values) }

// with returns the disk after a write.
func (d EtagDisk) with(clean bool, values Counters) EtagDisk {
	d.Clean, d.Values = clean, maps.Clone(d.Values)
	if d.Values == nil {
		d.Values = Counters{}
	}
	maps.Copy(d.Values, values)
	return d
}

// Etags judges what a node does with its etags: the rules of spec/etags.pml. It has what the
// cluster has recorded of the node, and what the node has on its disk. The zero value is a
// node of which nothing is known.
type Etags struct {
	record record
	// views are what the cluster knew at each start.
	views map[uint64]record
	disk  EtagDisk
	// writing is what the disk has when the write that was begun has ended.
	writing *EtagDisk
	run     etagRun
	// stops are the clean stops that were written.
	stops []etagRun
}

// etagRun is one process's use of the etags.
type etagRun struct {
	number int
	opened EtagDisk
	// after is how many starts the cluster had counted when the etags were opened.
	after uint64
	// limits are the blocks that are on disk.
	limits Counters
	// compared says that the disk was compared with the cluster's record; floors is what
	// all etags since must be above.
	compared bool
	floors   Counters
	// given are the newest etags that callers have, and last those of its clean stop.
	given, last Counters
}

// Ticket is the state of a node's etags when a caller asks for some.
type Ticket struct {
	run    int
	floors Counters
}

// Open has a process find what is on its disk. Of a disk that was set back nothing is said.
func (e *Etags) Open(found EtagDisk, setBack bool) error {
	known := e.run.number == 0 || found.equal(e.disk) || e.writing != nil && found.equal(*e.writing)
	if !setBack && !known {
		return fmt.Errorf("finds etags %v on its disk, which had %v", found.Values, e.disk.Values)
	}
	e.disk, e.writing = found, nil
	e.run = etagRun{number: e.run.number + 1, opened: found, after: e.record.starts, limits: maps.Clone(found.Values), given: Counters{}}
	return nil
}

// Reserve has a node begin to write the ends of new blocks.
func (e *Etags) Reserve(limits Counters) error {
	for database, limit := range limits {
		if before := e.disk.Values[database]; limit < before {
			return fmt.Errorf("reserves etags of %s up to %d, and has used %d", database, limit, before)
		}
	}
	next := e.disk.with(false, limits)
	e.writing = &next
	return nil
}

// Reserved has them on disk. A start number that is written with them shows that the node
// has compared its disk with what the cluster knew.
func (e *Etags) Reserved(start uint64) {
	e.wrote()
	e.run.limits = e.disk.Values
	if start > 0 && !e.run.compared {
		e.run.compared, e.run.floors = true, e.floors(&e.run, start)
	}
}

func (e *Etags) wrote() {
	if e.writing != nil {
		e.disk, e.writing = *e.writing, nil
	}
}

// Stop has a node begin to write a clean stop.
func (e *Etags) Stop(last Counters) error {
	for database, given := range e.run.given {
		if last[database] < given {
			return fmt.Errorf("stops with etag %d of %s, and has given %d", last[database], database, given)
		}
	}
	next := e.disk.with(true, last)
	e.writing = &next
	return nil
}

// Stopped has the clean stop on disk.
func (e *Etags) Stopped() {
	e.wrote()
	e.run.last = e.disk.Values
	e.stops = append(e.stops, e.run)
}

// Ask notes that a caller is about to ask for etags.
func (e *Etags) Ask() Ticket { return Ticket{e.run.number, e.run.floors} }

// Give has a caller be given etags. A process that began meanwhile may have given them, and
// then nothing is said.
func (e *Etags) Give(t Ticket, database string, first, last uint64) error {
	if t.run != e.run.number {
		return nil
	}
	switch opened, floor := e.run.opened.Values[database], t.floors[database]; {
	case t.run == 0:
		return errors.New("gives etags, and has not read its disk")
	case last > e.run.limits[database]:
		return fmt.Errorf("gives etag %d of %s, and has blocks up to %d on disk", last, database, e.run.limits[database])
	case first <= opened:
		return fmt.Errorf("gives etag %d of %s, and began with %d on disk", first, database, opened)
	case first <= floor:
		return fmt.Errorf("gives etag %d of %s, after it was compared with a ceiling of %d", first, database, floor)
	}
	e.run.given[database] = max(e.run.given[database], last)
	return nil
}

// floors returns what etags of a run must be above once it was compared. It has heard of
// one start up to this one that is its own, nobody knows which: where they differ, the
// lowest counts.
func (e *Etags) floors(r *etagRun, start uint64) Counters {
	var lowest Counters
	for s := r.after + 1; s <= start; s++ {
		v, known := e.views[s]
		if !known {
			continue
		}
		floors := v.floors(r.opened)
		if lowest == nil {
			lowest = floors
		}
		maps.DeleteFunc(lowest, func(database string, _ uint64) bool { return floors[database] == 0 })
		for database := range lowest {
			lowest[database] = min(lowest[database], floors[database])
		}
	}
	return lowest
}
