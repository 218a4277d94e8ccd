// Package dirfile has what lets an older program meet the files that a newer one left in a data directory: JSON
// objects whose unknown keys stay, and the versions of binary files. It does no I/O.
package dirfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/idnode/idnode/internal/crc32c"
)

// ErrOtherVersion means that the directory is as another program wrote it. Nothing in it is damaged.
var ErrOtherVersion = errors.New("the data directory has another form")

var errSum = errors.New("its checksum is wrong")

// Unknown are the keys of an object that this program does not know. It is never changed.
type Unknown map[string]json.RawMessage

// closing follows the checksum's value, which is the last one.
const closing = `"}`

// Encode returns the compact object of doc's keys, the unknown ones, and the last key, checksum: the CRC-32C, in
// hexadecimal digits, of the compact object with an empty checksum. doc is a struct that leaves out no empty field.
func Encode(doc any, unknown Unknown) ([]byte, error) {
	data, err := json.Marshal(doc)
	more, moreErr := json.Marshal(unknown)
	if err := errors.Join(err, moreErr); err != nil {
		return nil, err
	}
	data = data[:len(data)-1]
	if len(unknown) > 0 {
		data = append(append(data, ','), more[1:len(more)-1]...)
	}
	data = append(data, `,"checksum":"`...)
	return fmt.Appendf(data, "%08x"+closing, crc32c.Sum(data, []byte(closing))), nil
}

// Decode reads what Encode returned, indented or not, into the struct that doc points to, and returns the other
// keys. Where the error is that of the checksum alone, doc has what the file says.
func Decode(data []byte, doc any) (Unknown, error) {
	var compact bytes.Buffer
	var unknown Unknown
	if err := errors.Join(json.Compact(&compact, data), json.Unmarshal(data, &unknown)); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, doc); err != nil {
		return nil, err
	}
	at := max(0, compact.Len()-len("00000000"+closing))
	begin, sum := compact.Bytes()[:at], compact.Bytes()[at:]
	if string(sum) != fmt.Sprintf("%08x"+closing, crc32c.Sum(begin, []byte(closing))) {
		return nil, errSum
	}
	var known Unknown
	again, err := json.Marshal(doc)
	if err := errors.Join(err, json.Unmarshal(again, &known)); err != nil {
		return nil, err
	}
	maps.DeleteFunc(unknown, func(key string, _ json.RawMessage) bool {
		_, is := known[key]
		return is || key == "checksum"
	})
	if len(unknown) == 0 {
		return nil, nil
	}
	return unknown, nil
}

// Magic returns nil if a file begins with magic, whose last byte is its version, and is intact as a file of that
// version. One of a newer version is ErrOtherVersion, wrapped. Any other is damaged, and so is one in which the
// version alone is wrong: a newer version's sums differ.
func Magic(begin []byte, magic string, intact bool, damaged error) error {
	at := len(magic) - 1
	switch {
	case intact && bytes.HasPrefix(begin, []byte(magic)):
		return nil
	case !intact && bytes.HasPrefix(begin, []byte(magic[:at])) && len(begin) > at && begin[at] > magic[at]:
		return fmt.Errorf("%w: it is of version %d, of a newer program, and this program reads version %d; start that one",
			ErrOtherVersion, begin[at], magic[at])
	}
	return damaged
}
