package boltetag

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"

	"github.com/idnode/idnode/etag"
)

// bbolt follows the page numbers, sizes and offsets in a file without looking:
// a flipped bit can send it round in circles, or fill the memory, before any
// checksum is compared. So the tree of pages is walked here first, with every
// step checked. The layout is that of bbolt's file format, version 2.
const (
	pageHeader    = 16 // id uint64, flags uint16, count uint16, overflow uint32
	elementSize   = 16 // of branch and leaf elements alike
	metaSize      = 64
	metaMagic     = 0xED0CDAED
	branchPage    = 0x01
	leafPage      = 0x02
	bucketElement = 0x01
	bucketHeader  = 16 // root uint64, sequence uint64
)

var native = binary.NativeEndian

// tree is a file whose pages are being walked.
type tree struct {
	file     []byte
	pageSize uint64
	pages    uint64
	seen     map[uint64]bool
}

// checkStructure returns an error that wraps etag.ErrCorrupt if the file's tree
// of pages is not one.
func checkStructure(path string) error {
	file, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	meta := newestMeta(file)
	if meta == nil {
		return fmt.Errorf("%w: no valid meta page", etag.ErrCorrupt)
	}
	t := &tree{
		file: file, pageSize: uint64(native.Uint32(meta[8:])), pages: native.Uint64(meta[40:]),
		seen: make(map[uint64]bool),
	}
	// The division comes first, so that the product cannot overflow.
	if t.pageSize < 512 || t.pages > uint64(len(file))/t.pageSize {
		return fmt.Errorf("%w: the file is shorter than it says", etag.ErrCorrupt)
	}
	return t.bucket(native.Uint64(meta[16:]))
}

// newestMeta returns the valid meta page of the newest transaction, or nil.
func newestMeta(file []byte) []byte {
	first := metaAt(file, 0)
	// A file from another machine may have pages of another size.
	pageSize := os.Getpagesize()
	if first != nil {
		pageSize = int(native.Uint32(first[8:]))
	}
	second := metaAt(file, pageSize)
	if first == nil || (second != nil && native.Uint64(second[48:]) > native.Uint64(first[48:])) {
		return second
	}
	return first
}

// metaAt returns the meta page at offset if it is valid, or nil.
func metaAt(file []byte, offset int) []byte {
	if len(file) < offset+pageHeader+metaSize {
		return nil
	}
	meta := file[offset+pageHeader:][:metaSize]
	sum := fnv.New64a()
	_, _ = sum.Write(meta[:metaSize-8])
	if native.Uint32(meta) != metaMagic || sum.Sum64() != native.Uint64(meta[metaSize-8:]) {
		return nil
	}
	return meta
}

// bucket walks the tree that begins at page root.
func (t *tree) bucket(root uint64) error {
	page, err := t.page(root)
	if err != nil {
		return err
	}
	return t.walk(page, &keyOrder{})
}

// page returns the bytes of a page, which nothing else may have led to.
func (t *tree) page(id uint64) ([]byte, error) {
	if id < 2 || id >= t.pages || t.seen[id] {
		return nil, fmt.Errorf("%w: a link to page %d of %d", etag.ErrCorrupt, id, t.pages)
	}
	t.seen[id] = true
	page := t.file[id*t.pageSize:][:t.pageSize]
	// Keys and values are so small here that no page ever overflows.
	if native.Uint64(page) != id || native.Uint32(page[12:]) != 0 {
		return nil, fmt.Errorf("%w: head of page %d", etag.ErrCorrupt, id)
	}
	return page, nil
}

// walk checks a page, which may be one inside a value, and what is below it.
func (t *tree) walk(page []byte, order *keyOrder) error {
	if len(page) < pageHeader {
		return fmt.Errorf("%w: a page of %d bytes", etag.ErrCorrupt, len(page))
	}
	visit := t.leafElement
	switch native.Uint16(page[8:]) {
	case leafPage:
	case branchPage:
		visit = t.branchElement
	default:
		return fmt.Errorf("%w: a page of unknown kind", etag.ErrCorrupt)
	}
	count := int(native.Uint16(page[10:]))
	if pageHeader+count*elementSize > len(page) {
		return fmt.Errorf("%w: a page with %d elements", etag.ErrCorrupt, count)
	}
	for i := range count {
		if err := visit(page[pageHeader+i*elementSize:], order); err != nil {
			return err
		}
	}
	return nil
}

// branchElement checks the element at the start of rest: where its key is, how
// long that is, and the page below.
func (t *tree) branchElement(rest []byte, order *keyOrder) error {
	key, _, err := data(rest, native.Uint32(rest), native.Uint32(rest[4:]), 0)
	if err != nil {
		return err
	}
	if err := order.next(key, true); err != nil {
		return err
	}
	page, err := t.page(native.Uint64(rest[8:]))
	if err != nil {
		return err
	}
	return t.walk(page, order)
}

// leafElement checks the element at the start of rest: flags, where its key is,
// the lengths of key and value, and a bucket if the value is one.
func (t *tree) leafElement(rest []byte, order *keyOrder) error {
	key, value, err := data(rest, native.Uint32(rest[4:]), native.Uint32(rest[8:]), native.Uint32(rest[12:]))
	if err != nil {
		return err
	}
	if err := order.next(key, false); err != nil {
		return err
	}
	switch flags := native.Uint32(rest); {
	case flags == 0:
		return nil
	case flags != bucketElement || len(value) < bucketHeader:
		return fmt.Errorf("%w: an element of unknown kind", etag.ErrCorrupt)
	}
	if root := native.Uint64(value); root != 0 {
		return t.bucket(root)
	}
	return t.walk(value[bucketHeader:], &keyOrder{})
}

// data returns key and value of the element at the start of rest.
func data(rest []byte, position, keySize, valueSize uint32) (key, value []byte, err error) {
	begin := uint64(position)
	middle := begin + uint64(keySize)
	end := middle + uint64(valueSize)
	if begin < elementSize || end > uint64(len(rest)) {
		return nil, nil, fmt.Errorf("%w: an element beyond its page", etag.ErrCorrupt)
	}
	return rest[begin:middle], rest[middle:end], nil
}

// keyOrder checks that the keys of a bucket rise. A branch's key is at most the
// first key below it.
type keyOrder struct {
	last       []byte
	any        bool
	fromBranch bool
}

func (o *keyOrder) next(key []byte, branch bool) error {
	if cmp := bytes.Compare(key, o.last); o.any && (cmp < 0 || (cmp == 0 && !o.fromBranch)) {
		return fmt.Errorf("%w: keys are out of order", etag.ErrCorrupt)
	}
	o.last, o.any, o.fromBranch = key, true, branch
	return nil
}
