package boltfile

import (
	"bytes"
	"fmt"
	"io"
)

const (
	elementBytes = 16 // of branch and leaf elements alike
	branchPage   = 0x01
	leafPage     = 0x02

	bucketElement = 0x01
	bucketBytes   = 16 // root uint64, sequence uint64
)

type tree struct {
	meta
	file io.ReaderAt
	seen map[uint64]bool
}

func (t *tree) bucket(root uint64) error {
	page, err := t.page(root)
	if err != nil {
		return err
	}
	return t.walk(page, &keyOrder{})
}

// page reads a page with those that continue it, to which nothing else may have
// led.
func (t *tree) page(id uint64) ([]byte, error) {
	if err := t.claim(id); err != nil {
		return nil, err
	}
	page := make([]byte, t.pageSize)
	if _, err := t.file.ReadAt(page, int64(id*t.pageSize)); err != nil {
		return nil, unread(fmt.Sprint("page ", id), err)
	}
	more := uint64(native.Uint32(page[moreAt:]))
	if native.Uint64(page) != id || more >= t.pages-id {
		return nil, damaged("head of page %d", id)
	}
	if more == 0 {
		return page, nil
	}
	for next := id + 1; next <= id+more; next++ {
		if err := t.claim(next); err != nil {
			return nil, err
		}
	}
	rest := make([]byte, more*t.pageSize)
	if _, err := t.file.ReadAt(rest, int64((id+1)*t.pageSize)); err != nil {
		return nil, unread(fmt.Sprint("page ", id), err)
	}
	return append(page, rest...), nil
}

func (t *tree) claim(id uint64) error {
	if id < 2 || id >= t.pages || t.seen[id] {
		return damaged("a link to page %d of %d", id, t.pages)
	}
	t.seen[id] = true
	return nil
}

// walk checks a page, which may be one inside a value, and what is below it.
func (t *tree) walk(page []byte, order *keyOrder) error {
	if len(page) < headBytes {
		return damaged("a page of %d bytes", len(page))
	}
	count, visit := int(native.Uint16(page[countAt:])), t.leafElement
	switch native.Uint16(page[flagsAt:]) {
	case leafPage:
	case branchPage:
		if visit = t.branchElement; count == 0 {
			return damaged("a branch page without elements")
		}
	default:
		return damaged("a page of unknown kind")
	}
	if headBytes+count*elementBytes > len(page) {
		return damaged("a page with %d elements", count)
	}
	for i := range count {
		if err := visit(page[headBytes+i*elementBytes:], order); err != nil {
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
	case flags != bucketElement || len(value) < bucketBytes:
		return damaged("an element of unknown kind")
	}
	if root := native.Uint64(value); root != 0 {
		return t.bucket(root)
	}
	return t.walk(value[bucketBytes:], &keyOrder{})
}

func data(rest []byte, position, keyBytes, valueBytes uint32) (key, value []byte, err error) {
	begin := uint64(position)
	middle := begin + uint64(keyBytes)
	end := middle + uint64(valueBytes)
	if begin < elementBytes || end > uint64(len(rest)) {
		return nil, nil, damaged("an element beyond its page")
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
		return damaged("keys are out of order")
	}
	o.last, o.any, o.fromBranch = key, true, branch
	return nil
}
