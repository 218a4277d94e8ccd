package model

import (
	"errors"
	"testing"
)

// crashed is a node with a block of 10 on its disk, a ceiling of 100, and a start that the
// cluster has counted, whose process has begun again.
func crashed(t *testing.T) *Etags {
	t.Helper()
	e := &Etags{}
	must(t, errors.Join(e.Open(EtagDisk{}, false), e.Announced(1, false), reserve(e, 1, 10)))
	e.Raised(Counters{"db": 100})
	must(t, e.Open(e.disk, false))
	return e
}

// stopped is one that has stopped cleanly at 5, of which the cluster has heard.
func stopped(t *testing.T) *Etags {
	t.Helper()
	e := &Etags{}
	must(t, errors.Join(e.Open(EtagDisk{}, false), e.Announced(1, false), reserve(e, 1, 10)))
	e.Raised(Counters{"db": 100})
	must(t, errors.Join(e.Give(e.Ask(), "db", 1, 5), stop(e, 5), e.CleanStop(1, Counters{"db": 5}, false)))
	must(t, e.Open(e.disk, false))
	return e
}

// heard has the node hear of its start, compare its disk, and reserve a block.
func heard(e *Etags, start uint64, clean bool, limit uint64) error {
	if err := e.Announced(start, clean); err != nil {
		return err
	}
	return reserve(e, start, limit)
}

func reserve(e *Etags, start, limit uint64) error {
	err := e.Reserve(Counters{"db": limit})
	e.Reserved(start)
	return err
}

func stop(e *Etags, last uint64) error {
	err := e.Stop(Counters{"db": last})
	e.Stopped()
	return err
}

func give(e *Etags, first, last uint64) error { return e.Give(e.Ask(), "db", first, last) }

// Each rule of spec/etags.pml has steps that it allows, and steps that it does not.
func TestEtags(t *testing.T) {
	for _, tt := range []struct {
		name, why string // An empty why is a step that is allowed.
		begin     func(*testing.T) *Etags
		step      func(e *Etags) error
	}{
		{"a block is used when it is written", "", crashed, func(e *Etags) error { return errors.Join(reserve(e, 0, 20), give(e, 11, 20)) }},
		{
			"and not before", "has blocks up to 10", crashed,
			func(e *Etags) error { return errors.Join(e.Reserve(Counters{"db": 20}), give(e, 11, 12)) },
		},
		{"a crash ends the block", "began with 10", crashed, func(e *Etags) error { return errors.Join(reserve(e, 0, 20), give(e, 10, 11)) }},
		{"a block does not go back", "has used 10", crashed, func(e *Etags) error { return e.Reserve(Counters{"db": 9}) }},
		{
			"a node that heard of its start begins above the ceiling", "", crashed,
			func(e *Etags) error { return errors.Join(heard(e, 2, false, 120), give(e, 101, 101)) },
		},
		{"and not below it", "a ceiling of 100", crashed, func(e *Etags) error { return errors.Join(heard(e, 2, false, 120), give(e, 11, 11)) }},
		{"a call that came before that may be below", "", crashed, func(e *Etags) error {
			asked := e.Ask()
			return errors.Join(reserve(e, 0, 20), heard(e, 2, false, 120), e.Give(asked, "db", 11, 11))
		}},
		{"one that another process began for says nothing", "", crashed, func(e *Etags) error {
			asked := e.Ask()
			return errors.Join(e.Open(e.disk, false), e.Give(asked, "db", 1, 1))
		}},
		{
			"a clean stop that disk and cluster agree on goes on exactly", "", stopped,
			func(e *Etags) error { return errors.Join(heard(e, 2, true, 20), give(e, 6, 6)) },
		},
		{"one that only the disk has does not", "a ceiling of 100", crashed, func(e *Etags) error {
			return errors.Join(stop(e, 10), e.Open(e.disk, false), heard(e, 2, false, 120), give(e, 11, 11))
		}},
		{"one at another etag does not", "a ceiling of 100", stopped, func(e *Etags) error {
			return errors.Join(reserve(e, 0, 20), stop(e, 6), e.Open(e.disk, false), heard(e, 2, true, 120), give(e, 7, 7))
		}},
		{
			"a clean stop counts for one start", "follows a clean stop: true", stopped,
			func(e *Etags) error { return errors.Join(heard(e, 2, true, 20), e.Announced(3, true)) },
		},
		{"each start has a number", "counts start 3", crashed, func(e *Etags) error { return e.Announced(3, false) }},
		{"a clean stop is recorded for the present start", "", crashed, func(e *Etags) error {
			return errors.Join(heard(e, 2, false, 120), give(e, 101, 102), stop(e, 102), e.CleanStop(2, Counters{"db": 102}, false))
		}},
		{
			"and not for one before", "of start 1 in start 2", crashed,
			func(e *Etags) error { return errors.Join(heard(e, 2, false, 120), e.CleanStop(1, nil, false)) },
		},
		{"one is on disk first", "is on no disk", crashed, func(e *Etags) error {
			return errors.Join(heard(e, 2, false, 120), e.CleanStop(2, Counters{"db": 102}, false))
		}},
		{"one of a disk that was not compared does not count", "was not compared", crashed, func(e *Etags) error {
			return errors.Join(e.Announced(2, false), stop(e, 10), e.CleanStop(2, Counters{"db": 10}, false))
		}},
		{"a clean stop has all that was given", "has given 20", crashed, func(e *Etags) error {
			return errors.Join(reserve(e, 0, 20), give(e, 11, 20), e.Stop(Counters{"db": 19}))
		}},
		{
			"a crash may keep a write", "", crashed,
			func(e *Etags) error { return errors.Join(e.Reserve(Counters{"db": 20}), e.Open(*e.writing, false)) },
		},
		{"or lose it", "", crashed, func(e *Etags) error { return errors.Join(e.Reserve(Counters{"db": 20}), e.Open(e.disk, false)) }},
		{"but none that ended", "finds etags", crashed, func(e *Etags) error {
			before := e.disk
			return errors.Join(reserve(e, 0, 20), e.Open(before, false))
		}},
		{"unless the disk was set back", "", crashed, func(e *Etags) error {
			before := e.disk
			return errors.Join(reserve(e, 0, 20), e.Open(before, true))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			judge(t, tt.step(tt.begin(t)), tt.why)
		})
	}
}
