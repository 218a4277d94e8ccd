package audit

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

// FuzzVerify: every file is read to its end or found broken, and its complete lines are valid
// without the rest.
func FuzzVerify(f *testing.F) {
	whole := linesOf(f, "a", "b")
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(append(bytes.Clone(whole), whole...))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := Verify(bytes.NewReader(data), "")
		if err != nil {
			if !errors.Is(err, ErrBroken) {
				t.Fatal(err)
			}
			return
		}
		if found.bytes+found.Torn != int64(len(data)) {
			t.Fatalf("%d bytes in %d lines and %d torn, of %d", found.bytes, found.Records, found.Torn, len(data))
		}
		again, err := Verify(bytes.NewReader(data[:found.bytes]))
		if err != nil || again.Records != found.Records || again.Head != found.Head || again.Torn != 0 {
			t.Fatalf("the whole lines alone: %+v, %v", again, err)
		}
	})
}

// FuzzChangedLine: whatever is recorded is read again, and one changed byte is
// found, but for the end of the last line, which a crash could have left.
func FuzzChangedLine(f *testing.F) {
	f.Add("users", "ops", 10, byte(1))
	f.Add("a\"\\\n\xff", "<&>\u2028", 200, byte(0x80))
	f.Add("", "", 0, byte(' '))
	f.Fuzz(func(t *testing.T, name, principal string, at int, mask byte) {
		data := linesOf(t, name, principal)
		found, err := Verify(bytes.NewReader(data))
		if err != nil || found.Records != 2 || found.Torn != 0 {
			t.Fatalf("what was written: %+v, %v", found, err)
		}
		if mask == 0 || at < 0 {
			return
		}
		data[at%len(data)] ^= mask
		changed, err := Verify(bytes.NewReader(data))
		if err == nil && changed.Torn == 0 {
			t.Fatalf("byte %d of %q was changed, and nothing found", at%len(data), data)
		}
	})
}

// linesOf returns a log with a record for each name.
func linesOf(t testing.TB, names ...string) (log []byte) {
	head := ""
	for i, name := range names {
		r := Record{Event: EventSeed, Outcome: OutcomeDone, Principal: name, Name: name, Before: name}
		text, hash, err := encode(line{Seq: uint64(i + 1), Time: time.Unix(int64(i), 0), Prev: head, Record: r})
		if err != nil {
			t.Fatal(err)
		}
		log, head = append(log, text...), hash
	}
	return log
}
