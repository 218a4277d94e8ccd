package wal

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
)

// errCrash is what every call to a memDisk returns from its crash on.
var errCrash = errors.New("the machine has crashed")

// sectorBytes is what a memDisk writes as a whole or not at all.
const sectorBytes = 512

// memDisk is a disk in memory that tells what programs see from what is durable,
// and can crash at any call that changes something.
type memDisk struct {
	files map[string]*memFile
	// durable are the names after a loss of power; changes are what happened to
	// names since.
	durable map[string]*memFile
	changes []func(names map[string]*memFile)
	// left is how many more changing calls go well; negative: all of them.
	left int
	// torn is how many bytes of the write that crashes still arrive.
	torn int
	// failSync makes the next sync of a file fail, as a disk error does: what
	// was written stays visible, looks clean, and never gets to the disk.
	failSync error
	// failNames is in how many syncs of the names one fails so.
	failNames int
	// full means that no inode is left.
	full bool
}

type memFile struct {
	disk          *memDisk
	data, durable []byte
	pending       []memWrite
	// open is how often it is open.
	open int
}

type memWrite struct {
	at   int64
	data []byte
}

func newMemDisk() *memDisk {
	return &memDisk{files: map[string]*memFile{}, durable: map[string]*memFile{}, left: -1}
}

// step counts one changing call.
func (d *memDisk) step() error {
	if d.left == 0 {
		return errCrash
	}
	d.left--
	return nil
}

func (d *memDisk) change(change func(map[string]*memFile)) error {
	if err := d.step(); err != nil {
		return err
	}
	change(d.files)
	d.changes = append(d.changes, change)
	return nil
}

func (d *memDisk) Names() ([]string, error) { return slices.Sorted(maps.Keys(d.files)), nil }

func (d *memDisk) Open(name string) (File, error) {
	if f := d.files[name]; f != nil {
		f.open++
		return f, nil
	}
	return nil, fs.ErrNotExist
}

func (d *memDisk) Create(name string) (File, error) {
	if d.files[name] != nil && d.left != 0 {
		return nil, fs.ErrExist
	}
	if d.full {
		return nil, syscall.ENOSPC
	}
	f := &memFile{disk: d, open: 1}
	return f, d.change(func(names map[string]*memFile) { names[name] = f })
}

func (d *memDisk) Rename(from, to string) error {
	return d.change(func(names map[string]*memFile) {
		if f := names[from]; f != nil {
			names[to] = f
			delete(names, from)
		}
	})
}

func (d *memDisk) Remove(name string) error {
	return d.change(func(names map[string]*memFile) { delete(names, name) })
}

func (d *memDisk) Sync() error {
	if err := d.step(); err != nil {
		return err
	}
	changes := d.changes
	d.changes = nil
	if d.failNames--; d.failNames == 0 {
		return syscall.EIO
	}
	for _, change := range changes {
		change(d.durable)
	}
	return nil
}

func (f *memFile) ReadAt(p []byte, at int64) (int, error) {
	n := copy(p, f.data[min(at, int64(len(f.data))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, at int64) (int, error) {
	if err := f.disk.step(); err != nil {
		arrived := min(f.disk.torn, len(p))
		if len(p) <= markBytes {
			arrived = 0 // a write that is assumed to happen as a whole
		}
		f.disk.torn = 0
		f.put(memWrite{at, p[:arrived]})
		return arrived, err
	}
	f.put(memWrite{at, p})
	return len(p), nil
}

func (f *memFile) put(w memWrite) {
	w.data = slices.Clone(w.data)
	f.pending = append(f.pending, w)
	f.data = w.onto(f.data)
}

// onto returns content with the write done to it.
func (w memWrite) onto(content []byte) []byte {
	if more := int(w.at) + len(w.data) - len(content); more > 0 {
		content = append(content, make([]byte, more)...)
	}
	copy(content[w.at:], w.data)
	return content
}

func (f *memFile) Close() error {
	f.open--
	return nil
}

func (f *memFile) Size() (int64, error) { return int64(len(f.data)), nil }

func (f *memFile) Sync() error {
	if err := f.disk.step(); err != nil {
		return err
	}
	pending := f.pending
	f.pending = nil
	if err := f.disk.failSync; err != nil {
		f.disk.failSync = nil
		return err
	}
	for _, w := range pending {
		f.durable = w.onto(f.durable)
	}
	return nil
}

// clone copies the disk as a program sees it; crash and faults are over.
func (d *memDisk) clone() *memDisk {
	c := newMemDisk()
	twins := map[*memFile]*memFile{}
	twin := func(f *memFile) *memFile {
		if twins[f] == nil {
			twins[f] = &memFile{
				disk: c, data: slices.Clone(f.data), durable: slices.Clone(f.durable), pending: slices.Clone(f.pending),
			}
		}
		return twins[f]
	}
	for name, f := range d.files {
		c.files[name] = twin(f)
	}
	for name, f := range d.durable {
		c.durable[name] = twin(f)
	}
	// What is pending for names counts as durable in the copy.
	if len(d.changes) > 0 {
		c.durable = maps.Clone(c.files)
	}
	return c
}

// powerLoss returns the disk after a loss of power: of the changes of names that
// were not synced any are left, of the writes any sectors.
func (d *memDisk) powerLoss(random *rand.Rand) *memDisk {
	c := newMemDisk()
	names := maps.Clone(d.durable)
	for _, change := range d.changes {
		if random.IntN(2) == 0 {
			change(names)
		}
	}
	for name, f := range names {
		content := slices.Clone(f.durable)
		for _, w := range f.pending {
			for _, part := range w.sectors() {
				if random.IntN(2) == 0 {
					content = part.onto(content)
				}
			}
		}
		c.files[name] = &memFile{disk: c, data: content, durable: slices.Clone(content)}
	}
	c.durable = maps.Clone(c.files)
	return c
}

// sectors cuts a write at the borders of sectors.
func (w memWrite) sectors() (parts []memWrite) {
	for len(w.data) > 0 {
		n := min(int64(len(w.data)), sectorBytes-w.at%sectorBytes)
		parts = append(parts, memWrite{w.at, w.data[:n]})
		w = memWrite{w.at + n, w.data[n:]}
	}
	return parts
}
