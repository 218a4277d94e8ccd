package raftlog

import (
	"fmt"

	"github.com/idnode/idnode/internal/wire"
)

// DecodeEntry decodes an entry for a reader that knows formats up to newest: all formats so far
// have the same envelope. The result's byte slices are views into data.
//
// Errors: *UnknownFormatError for a newer format, else an error that wraps ErrCorrupt.
func DecodeEntry(data []byte, newest uint32) (Entry, error) {
	if err := checkFormat(data, newest); err != nil {
		return Entry{}, err
	}
	// Counting first costs a walk over the lengths, and saves growing the
	// slices: an entry of any size takes two allocations.
	counts, err := walkEntry(data, nil, nil)
	if err != nil {
		return Entry{}, corrupted(err)
	}
	entry := Entry{Groups: make([]Group, 0, counts.groups)}
	operations := make([][]byte, 0, counts.operations)
	_, err = walkEntry(data, &entry, &operations)
	return entry, corrupted(err)
}

// checkFormat reads only the format, which is the first field in every format: the rest
// of a newer one may be unreadable.
func checkFormat(data []byte, newest uint32) error {
	if len(data) > MaxEntryBytes {
		return corrupt("entry of %d bytes, at most %d", len(data), MaxEntryBytes)
	}
	r := wire.NewReader(data)
	if r.Next() != entryFormat {
		return corrupt("entry without a format")
	}
	format := r.Uint32()
	if r.Err() != nil {
		return corrupted(r.Err())
	}
	if format > newest {
		return &UnknownFormatError{What: "log entry", Format: format, Known: newest}
	}
	return nil
}

type counts struct{ groups, operations int }

// walkEntry checks data and counts what is in it; it stores what it finds if
// entry is set.
func walkEntry(data []byte, entry *Entry, operations *[][]byte) (counts, error) {
	var found counts
	var header Header
	r := wire.NewReader(data)
	for r.More() {
		switch r.Next() {
		case entryFormat:
			header.Format = r.Uint32()
		case entryClusterID:
			header.ClusterID = bounded(&r, MaxClusterIDBytes)
		case entryTime:
			header.TimeUnixNano = int64(r.Varint())
		case entryGroups:
			walkNext(&r, &found, entry, operations)
		default:
			r.Unexpected()
		}
	}
	if entry != nil {
		entry.Header = header
	}
	return found, r.Err()
}

// walkNext is walkEntry for the next group of the entry that r reads.
func walkNext(r *wire.Reader, found *counts, entry *Entry, operations *[][]byte) {
	data := r.Repeated()
	if found.groups++; found.groups > MaxGroups {
		r.Fail("more than %d groups", MaxGroups)
	}
	if r.Err() != nil {
		return
	}
	group, err := walkGroup(data, &found.operations, operations)
	if err != nil {
		r.Fail("group %d: %w", found.groups, err)
	} else if entry != nil {
		entry.Groups = append(entry.Groups, group)
	}
}

// CheckGroup reports whether data is an encoded Group, and how many operations it holds,
// without allocating. A leader calls it on every group that came from elsewhere: a
// damaged group within an entry would stop every node.
func CheckGroup(data []byte) (operations int, err error) {
	if len(data) > MaxEntryBytes {
		return 0, corrupt("group of %d bytes, at most %d", len(data), MaxEntryBytes)
	}
	_, err = walkGroup(data, &operations, nil)
	return operations, corrupted(err)
}

// walkGroup decodes a group, adding the number of its operations to total. It
// stores them if operations is set.
func walkGroup(data []byte, total *int, operations *[][]byte) (Group, error) {
	var g Group
	first := 0
	if operations != nil {
		first = len(*operations)
	}
	r := wire.NewReader(data)
	for r.More() {
		switch r.Next() {
		case groupOrigin:
			g.Origin = bounded(&r, MaxOriginBytes)
		case groupSession:
			g.Session = r.Varint()
		case groupSequence:
			g.Sequence = r.Varint()
		case groupAcknowledged:
			g.Acknowledged = r.Varint()
		case groupOperations:
			op := r.Repeated()
			if *total++; *total > MaxOperations {
				r.Fail("more than %d operations", MaxOperations)
			} else if operations != nil {
				*operations = append(*operations, op)
			}
		default:
			r.Unexpected()
		}
	}
	if operations != nil {
		end := len(*operations)
		g.Operations = (*operations)[first:end:end]
	}
	return g, r.Err()
}

// bounded reads bytes, of which there are between one and most.
func bounded(r *wire.Reader, most int) []byte {
	v := r.Bytes()
	if len(v) > most {
		r.Fail("%d bytes, at most %d", len(v), most)
	}
	return v
}

func corrupted(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}
