package witness

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/idnode/idnode/internal/crc32c"
)

// TestASetBackDiskIsNoticed: a member B was seen in its first process; then another
// process greets.
func TestASetBackDiskIsNoticed(t *testing.T) {
	seen := func(w *Witness) {
		_ = w.Accept("b", 1, DiskState{Starts: 4, Last: 5, Term: 2}, Seen{})
		w.Acknowledged("b", 2, 9, 0)
		w.Acknowledged("b", 3, 20, 12)
		w.Acknowledged("b", 3, 0, 0) // A heartbeat.
		w.Told("b", 1, 3, 14, time.Minute)
	}
	for name, tt := range map[string]struct {
		says DiskState
		ok   bool
	}{
		"as it was":                         {DiskState{Starts: 5, Last: 20, Term: 3}, true},
		"further":                           {DiskState{Starts: 9, Last: 30, Term: 7, Committed: 25}, true},
		"the end cut off by a later leader": {DiskState{Starts: 5, Last: 14, Term: 4}, true},
		"the same start again":              {DiskState{Starts: 4, Last: 20, Term: 3}, false},
		"a start before":                    {DiskState{Starts: 3, Last: 20, Term: 3}, false},
		"an older term":                     {DiskState{Starts: 5, Last: 20, Term: 2}, false},
		"an acknowledged entry less":        {DiskState{Starts: 5, Last: 19, Term: 3}, false},
		"a committed entry less":            {DiskState{Starts: 5, Last: 13, Term: 4}, false},
		"an operator trusts the directory":  {DiskState{Starts: 2, Last: 3, Term: 1, Trusted: true}, true},
	} {
		w := New(nil)
		seen(w)
		// What was known counts after a restart of the witness, too.
		members, _ := w.Known()
		data := Record{ClusterID: []byte{1}, Committed: 3, Members: members}.Encode()
		stored, err := Decode(data, []byte{1})
		if err != nil || !reflect.DeepEqual(stored.Members, members) || stored.Committed != 3 {
			t.Fatalf("%+v, %v", stored, err)
		}
		for _, w := range []*Witness{w, New(stored.Members)} {
			if err := w.Accept("b", 2, tt.says, Seen{}); (err == nil) != tt.ok {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestAGreetingThatArrivesLateIsNoAlarm: the process acknowledged more after it wrote
// the greeting.
func TestAGreetingThatArrivesLateIsNoAlarm(t *testing.T) {
	w := New(nil)
	written := DiskState{Starts: 1, Last: 5, Term: 2}
	if err := w.Accept("b", 1, written, Seen{}); err != nil {
		t.Fatal(err)
	}
	w.Acknowledged("b", 3, 9, 9)
	if err := w.Accept("b", 1, written, Seen{}); err != nil {
		t.Error(err)
	}
	// What another process says by the way is not compared, and does not count.
	w.Told("b", 2, 7, 30, 0)
	if members, _ := w.Known(); members["b"].Committed != 9 {
		t.Errorf("%+v", members["b"])
	}
}

// TestAProcessSetBackWithItsMemoryIsNoticed: what a process says when it is asked is no less
// than what was seen of it before.
func TestAProcessSetBackWithItsMemoryIsNoticed(t *testing.T) {
	for name, tt := range map[string]struct {
		says DiskState
		ok   bool
	}{
		"as it was":                  {DiskState{Starts: 4, Last: 20, Term: 3, Age: time.Minute}, true},
		"further":                    {DiskState{Starts: 4, Last: 30, Term: 7, Age: time.Hour}, true},
		"younger, and all is there":  {DiskState{Starts: 4, Last: 20, Term: 3, Age: time.Minute - 1}, false},
		"an older term":              {DiskState{Starts: 4, Last: 20, Term: 2, Age: time.Hour}, false},
		"an acknowledged entry less": {DiskState{Starts: 4, Last: 19, Term: 3, Age: time.Hour}, false},
		"a committed entry less":     {DiskState{Starts: 4, Last: 13, Term: 4, Age: time.Hour}, false},
		"it was trusted once":        {DiskState{Starts: 4, Last: 13, Term: 4, Age: time.Hour, Trusted: true}, false},
	} {
		w := New(nil)
		_ = w.Accept("b", 1, DiskState{Starts: 4, Last: 5, Term: 2, Age: time.Second}, Seen{})
		before := w.Seen("b")
		w.Acknowledged("b", 3, 20, 14)
		w.Told("b", 1, 3, 14, time.Minute)
		if err := w.Accept("b", 1, tt.says, w.Seen("b")); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err := w.Accept("b", 1, tt.says, before); err != nil {
			t.Errorf("%s, asked before it was seen: %v", name, err)
		}
	}
}

// TestALaterProgramsRecordIsRead: a later program records more, of the node and of the members. What it records of
// the node stays when this program writes the record.
func TestALaterProgramsRecordIsRead(t *testing.T) {
	const later = `{"cluster_id":"01","committed":12,"members":{"b":{"starts":3,"zone":"a"}},"zone":"c","checksum":"`
	data := fmt.Appendf(nil, later+`%08x"}`, crc32c.Sum([]byte(later+`"}`)))
	for range 2 {
		r, err := Decode(data, []byte{1})
		if err != nil || r.Committed != 12 || r.Members["b"].Starts != 3 || string(r.Unknown["zone"]) != `"c"` {
			t.Fatalf("%+v, %v", r, err)
		}
		data = r.Encode()
	}
}

func TestADamagedRecordIsEmpty(t *testing.T) {
	written := Record{ClusterID: []byte{1}, Committed: 12, Members: map[string]Seen{"b": {Starts: 3}}}
	data := written.Encode()
	for i := range data {
		damaged := append([]byte(nil), data...)
		damaged[i] ^= 1
		if r, err := Decode(damaged, []byte{1}); err == nil && !reflect.DeepEqual(r, written) {
			t.Errorf("byte %d: %+v", i, r)
		}
	}
	if r, err := Decode(data, []byte{2}); err != nil || r.Committed != 0 || len(r.Members) > 0 {
		t.Errorf("of another cluster: %+v, %v", r, err)
	}
	if _, err := Decode(nil, []byte{1}); err != nil {
		t.Errorf("none: %v", err)
	}
}
