package simulation

import (
	"cmp"

	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/test/history"
	"github.com/idnode/idnode/test/model"
)

// tracedEtags is a process's store of etags whose steps the model judges.
type tracedEtags struct {
	etag.Store
	process *process
	tracer  *tracer
	model   *model.Etags
}

// tracedEtags returns a process's store of etags with the model told what it does.
func (t *tracer) tracedEtags(p *process, node []byte, store etag.Store) etag.Store {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &tracedEtags{store, p, t, t.cluster.Etags(node)}
}

// Load implements etag.Store.
func (s *tracedEtags) Load() (etag.Stored, error) {
	state, err := s.Store.Load()
	if err == nil {
		found := model.EtagDisk{Clean: state.Clean, Values: model.Counters(state.Databases)}
		s.tracer.take(s.process, "finds etags %v on its disk, clean stop: %t", [3]any{found.Values, found.Clean}, func(string) error {
			s.process.etags = s.model
			s.process.session.readEtags()
			return s.model.Open(found, s.process.session.setBack)
		})
	}
	return state, err
}

// readEtags notes that a process has read the etags.
func (s *session) readEtags() {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	s.disk.aged = false
}

// Reserve implements etag.Store.
func (s *tracedEtags) Reserve(r etag.Reservation) error {
	s.tracer.take(s.process, "reserves etags up to %v", [3]any{r.Limits}, func(string) error { return s.model.Reserve(r.Limits) })
	err := s.Store.Reserve(r)
	if err == nil {
		s.tracer.take(s.process, "has these etags reserved, and start %d on disk", [3]any{r.Start}, func(string) error {
			s.model.Reserved(r.Start)
			return nil
		})
	}
	return err
}

// Stop implements etag.Store.
func (s *tracedEtags) Stop(last map[string]uint64) error {
	s.tracer.take(s.process, "stops with its etags at %v", [3]any{last}, func(string) error { return s.model.Stop(last) })
	err := s.Store.Stop(last)
	if err == nil {
		s.tracer.take(s.process, "has its clean stop on disk", [3]any{}, func(string) error {
			s.model.Stopped()
			return nil
		})
	}
	return err
}

// etagTicket is how a process's etags stood when a caller asked for some.
type etagTicket struct {
	process *process
	ticket  model.Ticket
}

// asksEtags notes that a caller is about to ask a machine's node for etags. There may be
// none.
func (t *tracer) asksEtags(s *server) etagTicket {
	p := s.current()
	t.mu.Lock()
	defer t.mu.Unlock()
	if p == nil || p.etags == nil {
		return etagTicket{}
	}
	return etagTicket{p, p.etags.Ask()}
}

// gaveEtags has a caller be given etags, by the process that it asked.
func (t *tracer) gaveEtags(at etagTicket, database string, blocks []history.Block) {
	if at.process == nil || len(blocks) == 0 {
		return
	}
	database = cmp.Or(database, "default")
	t.take(at.process, "has given a caller etags of %s: %v", [3]any{database, blocks}, func(string) error {
		for _, b := range blocks {
			if err := at.process.etags.Give(at.ticket, database, uint64(b.First), uint64(b.Last)); err != nil {
				return err
			}
		}
		return nil
	})
}
