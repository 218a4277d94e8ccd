package damage

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

const (
	sector = 512
	page   = 4096
)

// damage is one way in which one file of a node's data is spoilt.
type damage struct {
	tag, file, kind string
	// at is where in the file, from how far away the bytes come instead.
	at, from int64
	// with has the bytes that take the place of the file's, or follow them.
	with []byte
	// whole is the file of another node, or an older copy, that replaces it.
	whole string
}

func (d damage) String() string {
	switch d.kind {
	case "swapped", "older", "older folder":
		return fmt.Sprintf("%s of %s, %s: %s", d.file, d.tag, d.kind, d.whole)
	default:
		return fmt.Sprintf("%s of %s, %s at %d (%d)", d.file, d.tag, d.kind, d.at, d.from)
	}
}

// kinds are the ways, each with how often it is drawn.
var kinds = []struct {
	name  string
	share int
	draw  func(d *damage, r *rand.Rand, p *past, content []byte) bool
}{
	{"bit flip", 8, drawFlip},
	{"truncation", 3, drawTruncation},
	{"zeroed block", 4, drawZeros},
	{"swapped", 2, drawSwap},
	{"older", 4, drawOlder},
	{"deleted", 1, func(*damage, *rand.Rand, *past, []byte) bool { return true }},
	{"appended", 1, drawGarbage},
	{"page twice", 3, drawTwice},
}

// draw draws one damage to one node. The same random source draws the same.
func (p *past) draw(r *rand.Rand) (damage, error) {
	return p.drawOf(r, p.Tags[r.IntN(len(p.Tags))])
}

// drawOf draws one to the node with the tag.
func (p *past) drawOf(r *rand.Rand, tag string) (damage, error) {
	for {
		d := damage{tag: tag}
		if r.IntN(40) == 0 {
			if p.drawFolder(&d, r) {
				return d, nil
			}
			continue
		}
		var err error
		if d.file, err = drawFile(r, p.Last[d.tag]); err != nil {
			return d, err
		}
		content, err := os.ReadFile(filepath.Join(p.Last[d.tag], d.file))
		if err != nil {
			return d, err
		}
		if p.drawKind(&d, r, content) {
			return d, nil
		}
	}
}

// drawFolder lets an older copy of a whole folder replace it.
func (p *past) drawFolder(d *damage, r *rand.Rand) bool {
	folders := []string{"snapshots", "log"}
	d.file, d.kind = folders[r.IntN(len(folders))], "older folder"
	d.whole = filepath.Join(p.Older[d.tag][r.IntN(len(p.Older[d.tag]))], d.file)
	files, err := filesOf(d.whole)
	return err == nil && len(files) > 0
}

// drawFile draws a part of the data, and then a file of it, since there are many
// files of some parts.
func drawFile(r *rand.Rand, dir string) (string, error) {
	files, err := filesOf(dir)
	if err != nil {
		return "", err
	}
	var parts []string
	byPart := make(map[string][]string)
	for _, file := range files {
		name := part(file)
		if byPart[name] == nil {
			parts = append(parts, name)
		}
		byPart[name] = append(byPart[name], file)
	}
	drawn := byPart[parts[r.IntN(len(parts))]]
	return drawn[r.IntN(len(drawn))], nil
}

// drawKind fills in d, and says whether it changes the file at all.
func (p *past) drawKind(d *damage, r *rand.Rand, content []byte) bool {
	all := 0
	for _, k := range kinds {
		all += k.share
	}
	n := r.IntN(all)
	for _, k := range kinds {
		if n -= k.share; n < 0 {
			d.kind = k.name
			return k.draw(d, r, p, content)
		}
	}
	return false
}

// place draws a place in the content. Half of the places are drawn among those
// with something in them: the files consist of zeros for the most part.
func place(r *rand.Rand, content []byte) int64 {
	at := r.IntN(max(1, len(content)))
	if r.IntN(2) == 0 {
		return int64(at)
	}
	used := len(bytes.TrimRight(content, "\x00"))
	at = r.IntN(max(1, used))
	for i := range 4096 {
		if j := at + i; j < used && content[j] != 0 {
			return int64(j)
		}
	}
	return int64(at)
}

func drawFlip(d *damage, r *rand.Rand, _ *past, content []byte) bool {
	if len(content) == 0 {
		return false
	}
	d.at = place(r, content)
	d.with = []byte{content[d.at] ^ 1<<r.IntN(8)}
	return true
}

func drawTruncation(d *damage, r *rand.Rand, _ *past, content []byte) bool {
	d.at = place(r, content)
	if r.IntN(3) == 0 {
		d.at = d.at / page * page
	}
	if r.IntN(6) == 0 {
		d.at = 0
	}
	return d.at < int64(len(content))
}

func drawZeros(d *damage, r *rand.Rand, _ *past, content []byte) bool {
	size := int64(sector)
	if r.IntN(2) == 0 {
		size = page
	}
	d.at = place(r, content) / size * size
	d.with = make([]byte, min(size, int64(len(content))-d.at))
	return bytes.Count(content[d.at:][:len(d.with)], []byte{0}) < len(d.with)
}

// drawTwice puts one page of the file in the place of another.
func drawTwice(d *damage, r *rand.Rand, _ *past, content []byte) bool {
	if len(content) < 2*sector {
		return false
	}
	size := int64(page)
	if len(content) < 2*page {
		size = sector
	}
	d.at, d.from = place(r, content)/size*size, place(r, content)/size*size
	if d.at+size > int64(len(content)) || d.from+size > int64(len(content)) {
		return false
	}
	d.with = bytes.Clone(content[d.from:][:size])
	return !bytes.Equal(d.with, content[d.at:][:size])
}

func drawGarbage(d *damage, r *rand.Rand, _ *past, content []byte) bool {
	d.at, d.with = int64(len(content)), make([]byte, 1+r.IntN(2*page))
	for i := range d.with {
		d.with[i] = byte(r.Uint32())
	}
	return true
}

func drawSwap(d *damage, r *rand.Rand, p *past, content []byte) bool {
	others := slices.DeleteFunc(slices.Clone(p.Tags), func(tag string) bool { return tag == d.tag })
	return d.take(p.Last[others[r.IntN(len(others))]], content)
}

func drawOlder(d *damage, r *rand.Rand, p *past, content []byte) bool {
	older := p.Older[d.tag]
	return d.take(older[r.IntN(len(older))], content)
}

// take lets the file's counterpart of another directory replace it.
func (d *damage) take(dir string, content []byte) (changes bool) {
	var ok bool
	if d.whole, ok = counterpart(dir, d.file); !ok {
		return false
	}
	with, err := os.ReadFile(d.whole)
	return err == nil && !bytes.Equal(with, content)
}

// do damages a copy of the node's data directory.
func (d damage) do(dir string) error {
	path := filepath.Join(dir, d.file)
	switch d.kind {
	case "deleted":
		return os.Remove(path)
	case "truncation":
		return os.Truncate(path, d.at)
	case "older folder":
		return errors.Join(os.RemoveAll(path), os.CopyFS(path, os.DirFS(d.whole)))
	case "swapped", "older":
		content, err := os.ReadFile(d.whole)
		if err != nil {
			return err
		}
		return os.WriteFile(path, content, 0o600)
	default:
		return write(path, d.with, d.at)
	}
}

func write(path string, b []byte, at int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(b, at)
	return err
}
