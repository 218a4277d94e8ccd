package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/docid"
)

// written makes a log with records for these names.
func written(t *testing.T, names ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.log")
	l, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := l.Write(t.Context(),
			Record{Event: EventSeed, Outcome: OutcomeDone, Principal: "ops", Name: name, Before: 7, After: 3}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestALogGoesOn after it was closed, as one chain.
func TestALogGoesOn(t *testing.T) {
	path := written(t, "a", "b")
	before, err := Verify(bytes.NewReader(content(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	if err := appendTo(path, Record{Event: EventRecover, Outcome: OutcomeDone, Principal: "root"}); err != nil {
		t.Fatal(err)
	}
	f, err := Verify(bytes.NewReader(content(t, path)), before.Head)
	if err != nil || f.Records != 3 || f.Torn != 0 || f.Head == before.Head || !f.Has(before.Head) || f.Has("x") {
		t.Errorf("%+v %v", f, err)
	}
	if f.Last.Before(f.First) {
		t.Errorf("from %s to %s", f.First, f.Last)
	}
}

// TestEveryChangeIsFound: no byte of a line can be another one, and no line be
// missing, added or moved.
func TestEveryChangeIsFound(t *testing.T) {
	whole := content(t, written(t, "a", "b", "c"))
	for i := range whole {
		changed := bytes.Clone(whole)
		changed[i] ^= 1
		f, err := Verify(bytes.NewReader(changed))
		if err == nil && f.Torn == 0 {
			t.Fatalf("byte %d, %q, was changed unnoticed", i, whole[i])
		}
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for name, forged := range map[string][]byte{
		"first missing":  bytes.Join(lines[1:], nil),
		"middle missing": bytes.Join([][]byte{lines[0], lines[2]}, nil),
		"twice":          bytes.Join([][]byte{lines[0], lines[0], lines[1]}, nil),
		"swapped":        bytes.Join([][]byte{lines[1], lines[0]}, nil),
		"empty line":     append([]byte("\n"), whole...),
		"another log's":  bytes.Join([][]byte{lines[0], bytes.SplitAfter(content(t, written(t, "x", "b")), []byte("\n"))[1]}, nil),
		"endless line":   bytes.Repeat([]byte("x"), maxLine+1<<20),
	} {
		if _, err := Verify(bytes.NewReader(forged)); !errors.Is(err, ErrBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheLongestRecordIsReadAgain: a node whose log has a table of roles of the greatest size
// starts again; a record that would be too long to read is not written.
func TestTheLongestRecordIsReadAgain(t *testing.T) {
	path := written(t, "a")
	table := strings.Repeat("\x01", rights.MaxEncodedBytes)
	if err := appendTo(path, Record{Event: EventRoles, Outcome: OutcomeDone, Before: table, After: table}); err != nil {
		t.Fatal(err)
	}
	if err := appendTo(path, Record{Event: EventRoles, Outcome: OutcomeDone, After: strings.Repeat("\x01", maxLine/6)}); err == nil {
		t.Error("a line that is too long was written")
	}
	if f, err := Verify(bytes.NewReader(content(t, path))); err != nil || f.Records != 2 || f.Torn != 0 {
		t.Errorf("%+v %v", f, err)
	}
}

// TestALineControlsNoTerminal, whatever the names are that it holds, and holds them all the same.
func TestALineControlsNoTerminal(t *testing.T) {
	const name = "\x1b[2J\r\n\x7f\u009b\u2028\u202e\u200b\u00ad\ufeff\U000e0041"
	text := content(t, written(t, name))
	if r, found := docid.FirstInvisible(strings.TrimSuffix(string(text), "\n")); found {
		t.Errorf("%q has %U", text, r)
	}
	var l line
	if err := json.Unmarshal(text, &l); err != nil || l.Name != name {
		t.Errorf("%q %v", l.Name, err)
	}
	if f, err := Verify(bytes.NewReader(text)); err != nil || f.Records != 1 {
		t.Errorf("%+v %v", f, err)
	}
}

// TestABrokenLogIsNotGoneOnWith: lines after the break would look valid.
func TestABrokenLogIsNotGoneOnWith(t *testing.T) {
	path := written(t, "a", "b")
	data := bytes.Replace(content(t, path), []byte(`"before":7`), []byte(`"before":3`), 1)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, nil); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("%v", err)
	}
	if !bytes.Equal(content(t, path), data) {
		t.Error("the file was changed")
	}
}

// TestATornLineIsCutOff wherever a crash came, and is reported.
func TestATornLineIsCutOff(t *testing.T) {
	whole := content(t, written(t, "a", "b"))
	first := bytes.IndexByte(whole, '\n') + 1
	for end := first; end < len(whole); end += 7 {
		path := filepath.Join(t.TempDir(), "audit.log")
		if err := os.WriteFile(path, whole[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := appendTo(path, Record{Event: EventSeed, Outcome: OutcomeDone, Name: "after"}); err != nil {
			t.Fatalf("cut at %d: %v", end, err)
		}
		data := content(t, path)
		f, err := Verify(bytes.NewReader(data))
		if torn := end > first; err != nil || bytes.Contains(data, []byte(EventTorn)) != torn ||
			f.Records != map[bool]uint64{true: 3, false: 2}[torn] {
			t.Fatalf("cut at %d: %+v %v\n%s", end, f, err, data)
		}
	}
}

// TestTwoProcessesDoNotShareAFile: their lines would not follow from each other.
func TestTwoProcessesDoNotShareAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if _, err := Open(path, nil); err == nil {
		t.Error("the file was opened twice")
	}
}

// TestWritersTakeTurns: many at once make one chain.
func TestWritersTakeTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := l.Write(t.Context(), Record{Event: EventDelete, Outcome: OutcomeIntended}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err := Verify(bytes.NewReader(content(t, path))); err != nil || f.Records != 20 {
		t.Errorf("%+v %v", f, err)
	}
	if err := l.Write(t.Context(), Record{}); err == nil {
		t.Error("a closed log takes a record")
	}
}

// TestNoLog records nothing, and fails nowhere.
func TestNoLog(t *testing.T) {
	var l *Log
	if err := errors.Join(l.Write(t.Context(), Record{}), l.Close()); err != nil {
		t.Error(err)
	}
}

// appendTo records one thing in a file that no node has open.
func appendTo(path string, r Record) error {
	l, err := Open(path, nil)
	if err != nil {
		return err
	}
	return errors.Join(l.Write(context.Background(), r), l.Close())
}
