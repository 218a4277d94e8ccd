package simulation

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	clusterdisk "github.com/idnode/idnode/cluster/disk"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/etag"
)

var (
	errCrashed = errors.New("the process has crashed")
	errIO      = errors.New("input/output error")
	errStalled = errors.New("a write took longer than the watchdog allows")
)

// image is everything that a machine's disk holds.
type image struct {
	record   *member.Record
	witness  []byte
	hasStore bool
	log      map[uint64]*raft.Log
	files    files
	stable   map[string][]byte
	snapshot *snapshot
	hasEtags bool
	etags    etag.Stored
	// older says that the disk was set back to this.
	older bool
}

// snapshot is one snapshot; it does not change any more.
type snapshot struct {
	meta raft.SnapshotMeta
	data []byte
}

// before orders snapshots as the files' names do.
func (s *snapshot) before(o *snapshot) bool {
	return s.meta.Term < o.meta.Term || s.meta.Term == o.meta.Term && s.meta.Index <= o.meta.Index
}

func newImage() *image {
	return &image{
		log: map[uint64]*raft.Log{}, files: newFiles(), stable: map[string][]byte{},
		etags: etag.Stored{Databases: map[string]uint64{}},
	}
}

func (i *image) clone() *image {
	c := *i
	c.log, c.stable = maps.Clone(i.log), maps.Clone(i.stable)
	c.files = i.files.clone()
	c.etags = cloneEtags(i.etags)
	return &c
}

// bounds returns the first and the last index of the log, zeros if it is empty.
func (i *image) bounds() (first, last uint64) {
	for index := range i.log {
		if first == 0 || index < first {
			first = index
		}
		last = max(last, index)
	}
	return first, last
}

// write is one step of a change that a crash may keep without the next.
type write func(*image)

// batch is the writes that one sync makes durable.
type batch struct {
	writes []write
	// transaction says that it is one of bbolt.
	transaction bool
	// scattered says that a crash may keep any of them, and not only the beginning:
	// they are sectors of a file, or changes of names.
	scattered bool
	// file is the number of the file; 0 for names.
	file uint64
}

// tear returns what a crash keeps of the batch.
func (b *batch) tear(r *rand.Rand) []write {
	if b.scattered {
		return slices.DeleteFunc(slices.Clone(b.writes), func(write) bool { return r.IntN(2) == 0 })
	}
	return b.writes[:r.IntN(len(b.writes)+1)]
}

// diskFaults say how a disk misbehaves. They change while it is used.
type diskFaults struct {
	// latency is how long a sync takes, half of it at least.
	latency time.Duration
	// twice says that a transaction of bbolt syncs its pages, and then what leads to them.
	twice bool
	// slow is the share of syncs that take long.
	slow float64
	// stallUntil is when a disk that hangs answers again.
	stallUntil time.Time
	// errorIn and crashIn count the syncs down to the one that fails; 0 is none.
	errorIn, crashIn int
	// full says that no space is free.
	full bool
}

// disk is one machine's disk. What it has durably outlives every process.
type disk struct {
	mu      sync.Mutex
	random  *rand.Rand
	durable *image
	faults  diskFaults
	// aged says that the etags are an older copy, which no process has read yet.
	aged bool
	// kept is an older copy of the etags, which the next process finds if back is
	// set.
	kept *etag.Stored
	back bool
	// lost says that the next process finds an empty disk.
	lost bool
	// older is what the next process finds, if set.
	older *image
	// away is the machine's own disk while another is in its place.
	away *image
	// made counts the files that were ever made.
	made uint64
	// synced counts the syncs of the log's files.
	synced int
	// quick says that nothing takes long any more.
	quick bool
	// slow has until when syncs take longer than each of the speeds, or did last.
	slow [len(speeds)]time.Time
}

func newDisk(random *rand.Rand) *disk { return &disk{random: random, durable: newImage()} }

// change changes how the disk misbehaves.
func (d *disk) change(change func(*diskFaults)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.faults)
}

// room is what is free.
func (d *disk) room() (clusterdisk.Room, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.faults.full {
		return clusterdisk.Room{}, nil
	}
	return clusterdisk.Room{Bytes: 1 << 40}, nil
}

// mount returns a new process's view of the disk. There must be no other.
func (d *disk) mount(died func(silent bool), lost func(index uint64)) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.aged = d.turnBack() || d.aged
	return &session{disk: d, live: d.durable.clone(), died: died, lost: lost, setBack: d.aged}
}

// setBack has the next process find an older copy of the etags.
func (d *disk) setBack() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.back = d.kept != nil
}

// turnBack sets the etags back if that is due, or keeps a copy of them now and
// then. It reports whether they are those of an older copy.
func (d *disk) turnBack() (back bool) {
	switch {
	case d.lost:
		d.durable, d.kept, d.back, d.older, d.lost = newImage(), nil, false, nil, false
	case d.older != nil:
		d.durable, d.kept, d.back, d.older = d.older, nil, false, nil
		return true
	case d.back:
		d.back = false
		d.durable.etags = cloneEtags(*d.kept)
		return true
	case d.kept == nil || d.durable.etags.Clean || d.random.IntN(3) == 0:
		copied := cloneEtags(d.durable.etags)
		d.kept = &copied
	}
	return false
}

func cloneEtags(s etag.Stored) etag.Stored {
	s.Databases = maps.Clone(s.Databases)
	return s
}

// session is the disk as one process sees it: what it has written, durable or
// not. Its fields are guarded by the disk's lock.
type session struct {
	disk *disk
	live *image
	// unsynced are the batches that are in live, and not durable yet.
	unsynced []*batch
	// failure is why nothing is given or taken any more.
	failure error
	// hurt says that the disk has failed this process in some way.
	hurt bool
	// limit and fatal are the watchdog, once Raft's store is open.
	limit time.Duration
	fatal func(error)
	// slow and slowed tell of syncs that are slow.
	slow   time.Duration
	slowed func(slow bool)
	// died is called when a write made the process crash: silently, if it is the
	// machine that has no power.
	died func(silent bool)
	// lost is called when an entry is missing from the middle of the log.
	lost func(index uint64)
	// setBack says that the process found older etags than its disk had.
	setBack bool
}

// crash ends the session as if by a loss of power. Of the writes that were not
// synced, the beginning may have reached the disk.
func (s *session) crash() {
	s.disk.mu.Lock()
	fatal := s.crashLocked()
	s.disk.mu.Unlock()
	notify(fatal)
}

func (s *session) crashLocked() (fatal func()) {
	if errors.Is(s.failure, errCrashed) {
		return nil
	}
	for _, b := range s.unsynced {
		s.disk.keep(b.tear(s.disk.random))
	}
	s.unsynced = nil
	s.hurt = true
	return s.failLocked(errCrashed)
}

// keep makes writes durable. The caller holds the lock.
func (d *disk) keep(writes []write) {
	for _, w := range writes {
		w(d.durable)
	}
}

// failLocked ends the session, and returns what to call without the lock.
func (s *session) failLocked(err error) (fatal func()) {
	s.failure = fmt.Errorf("simulated disk: %w", err)
	tell := s.fatal
	s.fatal = nil
	return func() {
		if tell != nil {
			tell(err)
		}
	}
}

func notify(fatal func()) {
	if fatal != nil {
		fatal()
	}
}

// survive ends the process if err is not nil: the Raft library panics when it
// cannot read an entry that it shall apply, or cannot save its term. Nobody could
// catch that, and here it would end all seeds.
func (s *session) survive(err error) {
	if err != nil {
		s.died(false)
		runtime.Goexit()
	}
}

// wasHurt says whether the disk has failed the process.
func (s *session) wasHurt() bool {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return s.hurt
}

// older says whether the process found an older copy of the whole disk.
func (s *session) older() bool {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return s.live.older
}

// read runs a reader of the live image.
func (s *session) read(reader func(*image) error) error {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if s.failure != nil {
		return s.failure
	}
	return reader(s.live)
}

// commit makes writes durable. What it returns nil for survives any crash; after
// errIO it is not known what the disk has.
func (s *session) commit(writes ...write) error {
	b := &batch{writes: writes}
	if err := s.put(b); err != nil {
		return err
	}
	return s.sync(b)
}

// put writes without syncing.
func (s *session) put(b *batch) error {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if s.failure != nil {
		return s.failure
	}
	for _, w := range b.writes {
		w(s.live)
	}
	s.unsynced = append(s.unsynced, b)
	return nil
}

// sync makes a batch durable, or fails. The watchdog watches it.
func (s *session) sync(b *batch) error {
	watchdog := s.watch()
	if b.transaction && s.syncsTwice() {
		s.wait()
	}
	err := s.syncUnwatched(b)
	watchdog()
	return err
}

// syncUnwatched is sync within a change that the watchdog watches as a whole.
func (s *session) syncUnwatched(b *batch) error {
	s.wait()
	s.disk.mu.Lock()
	fatal, err := s.syncLocked(b)
	s.disk.mu.Unlock()
	notify(fatal)
	if fatal != nil && errors.Is(err, errCrashed) {
		s.died(true)
	}
	return err
}

// transact is mustCommit for a transaction of bbolt.
func (s *session) transact(writes ...write) error {
	b := &batch{writes: writes, transaction: true}
	err := s.put(b)
	if err == nil {
		err = s.sync(b)
	}
	if errors.Is(err, errIO) {
		s.broke()
	}
	return err
}

// mustCommit is commit for what nothing may go on without: any error is the end
// of the session.
func (s *session) mustCommit(writes ...write) error {
	err := s.commit(writes...)
	if errors.Is(err, errIO) {
		s.broke()
	}
	return err
}

// broke ends the session because a write failed.
func (s *session) broke() {
	s.disk.mu.Lock()
	var fatal func()
	if s.failure == nil {
		fatal = s.failLocked(errIO)
	}
	s.disk.mu.Unlock()
	notify(fatal)
}

// watch ends the session when a sync takes too long, and tells when one is slow.
func (s *session) watch() (stop func()) {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if s.limit == 0 {
		return func() {}
	}
	timer := time.AfterFunc(s.limit, func() {
		s.disk.mu.Lock()
		s.hurt = true
		var fatal func()
		if s.failure == nil {
			fatal = s.failLocked(errStalled)
		}
		s.disk.mu.Unlock()
		notify(fatal)
	})
	slow := time.AfterFunc(s.slow, func() { s.slowed(true) })
	return func() {
		timer.Stop()
		if !slow.Stop() {
			s.slowed(false)
		}
	}
}

// syncsTwice says whether a transaction of bbolt takes two syncs.
func (s *session) syncsTwice() bool {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return s.disk.faults.twice
}

// wait takes the time of a sync.
func (s *session) wait() {
	s.disk.mu.Lock()
	f := s.disk.faults
	d := f.latency
	if d > 1 {
		d = d/2 + time.Duration(s.disk.random.Int64N(int64(d/2)))
	}
	if f.slow > 0 && s.disk.random.Float64() < f.slow {
		d += delay(s.disk.random)
	}
	d = max(d, time.Until(f.stallUntil))
	s.disk.takes(d)
	s.disk.mu.Unlock()
	if d > 0 {
		time.Sleep(d)
	}
}

// syncLocked is the moment of a sync. The crash that the countdown ends in comes
// before the writes are durable, or after.
func (s *session) syncLocked(b *batch) (fatal func(), err error) {
	if s.failure != nil {
		return nil, s.failure
	}
	f := &s.disk.faults
	if countdown(&f.errorIn) {
		s.disk.keep(b.tear(s.disk.random))
		s.settle(b)
		s.hurt = true
		return nil, errIO
	}
	dies := countdown(&f.crashIn)
	if dies && s.disk.random.IntN(2) == 0 {
		return s.crashLocked(), errCrashed
	}
	s.disk.keep(b.writes)
	s.settle(b)
	if dies {
		return s.crashLocked(), errCrashed
	}
	return nil, nil
}

// settle forgets a batch of which it is decided what is durable.
func (s *session) settle(b *batch) {
	s.unsynced = slices.DeleteFunc(s.unsynced, func(other *batch) bool { return other == b })
}

// countdown counts one down, and says whether that was the last.
func countdown(n *int) bool {
	if *n == 0 {
		return false
	}
	*n--
	return *n == 0
}
