package etag_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/idnode/idnode/etag"
)

// machine drives counters and a model through starts, stops, crashes and
// failing disks.
type machine struct {
	block uint64
	disk  *disk
	store *fakeStore
	c     *etag.Counters
	// last is the last etag handed out, or the floor it was raised to.
	last map[string]uint64
	// gap is how far the next etag may be above last + 1.
	gap map[string]uint64
	// asked is the largest block of a database since its last start.
	asked map[string]uint64
}

var (
	allDatabases = []string{"a", "b", "c"}
	databases    = rapid.SampledFrom(allDatabases)
)

func newMachine(t *rapid.T) *machine {
	m := &machine{
		block: uint64(rapid.IntRange(1, 64).Draw(t, "block")),
		disk:  &disk{}, last: map[string]uint64{}, gap: map[string]uint64{}, asked: map[string]uint64{},
	}
	m.start(t)
	return m
}

func (m *machine) start(t *rapid.T) {
	m.store = &fakeStore{disk: m.disk}
	m.c = open(t, m.store, etag.Config{BlockSize: m.block})
}

// lost notes that the stop was not clean: what was reserved may be gone.
func (m *machine) lost() {
	for _, database := range allDatabases {
		m.gap[database] += 2*m.block + m.asked[database]
		m.asked[database] = 0
	}
}

func (m *machine) check(t *rapid.T, database string, first, n uint64) {
	low := m.last[database] + 1
	if first < low || first > low+m.gap[database] {
		t.Fatalf("%s: %d etags from %d on, want %d to %d", database, n, first, low, low+m.gap[database])
	}
	m.last[database], m.gap[database] = first+n-1, 0
	m.asked[database] = max(m.asked[database], n)
	if state := m.disk.read(); state.Clean || state.Databases[database] < m.last[database] {
		t.Fatalf("%s: etag %d is out, the disk has %+v", database, m.last[database], state)
	}
}

func (m *machine) next(t *rapid.T) {
	database := databases.Draw(t, "database")
	m.check(t, database, next(t, m.c, database), 1)
}

func (m *machine) nextBlock(t *rapid.T) {
	database := databases.Draw(t, "database")
	n := rapid.IntRange(1, 200).Draw(t, "n")
	first, err := m.c.NextBlock(database, n)
	if err != nil {
		t.Fatalf("NextBlock: %v", err)
	}
	m.check(t, database, first, uint64(n))
}

func (m *machine) raise(t *rapid.T) {
	database := databases.Draw(t, "database")
	floor := m.last[database] + uint64(rapid.IntRange(0, 500).Draw(t, "above"))
	m.c.Raise(database, floor)
	// A floor within the gap of a crash shortens the gap by as much.
	rise := floor - m.last[database]
	m.last[database] = floor
	m.gap[database] -= min(rise, m.gap[database])
}

func (m *machine) restart(t *rapid.T) {
	closeCleanly(t, m.c)
	clear(m.asked)
	m.start(t)
	if !m.c.Opened().Clean {
		t.Fatal("a clean stop is not remembered")
	}
}

// crash ends the process at any moment: what is on disk is all that is left. A
// floor that was raised without use need not be.
func (m *machine) crash(t *rapid.T) {
	left := &disk{state: m.disk.read()}
	_ = m.c.Close()
	m.lost()
	for database := range m.last {
		m.forgetFloor(database, left)
	}
	m.disk = left
	m.start(t)
}

func (m *machine) forgetFloor(database string, left *disk) {
	if stored := left.state.Databases[database]; stored < m.last[database] {
		m.last[database] = stored
	}
}

// failingDisk lets a write fail, which may or may not have reached the disk,
// and starts again.
func (m *machine) failingDisk(t *rapid.T) {
	kept := rapid.Bool().Draw(t, "kept")
	m.disk.mu.Lock()
	m.store.beforeSync = func() (bool, error) { return kept, errDisk }
	m.disk.mu.Unlock()
	for range 10_000 {
		first, err := m.c.Next("a")
		if errors.Is(err, etag.ErrBroken) {
			m.crash(t)
			return
		}
		if err != nil {
			t.Fatalf("Next on a failing disk: %v", err)
		}
		m.check(t, "a", first, 1)
	}
	t.Fatal("a failing disk is not noticed")
}

func TestCountersAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		defer func() { _ = m.c.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"next":        m.next,
			"nextBlock":   m.nextBlock,
			"raise":       m.raise,
			"restart":     m.restart,
			"crash":       m.crash,
			"failingDisk": m.failingDisk,
			"": func(t *rapid.T) {
				if m.store.misused != "" {
					t.Fatal(m.store.misused)
				}
			},
		})
	})
}
