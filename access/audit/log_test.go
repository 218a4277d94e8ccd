package audit

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idnode/idnode/test/logbuffer"
)

// badDisk is a file that can have no more than room bytes, or whose disk hangs.
type badDisk struct {
	file
	room  int64
	hangs chan struct{}
}

func (d *badDisk) Write(b []byte) (int, error) {
	if d.hangs != nil {
		<-d.hangs
	}
	have, err := d.Stat()
	if err != nil {
		return 0, err
	}
	if room := d.room - have.Size(); int64(len(b)) > room {
		n, err := d.file.Write(b[:room])
		return n, errors.Join(err, syscall.ENOSPC)
	}
	return d.file.Write(b)
}

// opened opens a log for a test, with its logger's output.
func opened(t *testing.T, path string) (*Log, *logbuffer.Buffer) {
	t.Helper()
	var said logbuffer.Buffer
	l, err := Open(path, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, &said
}

// seed records a seed of a name.
func seed(t *testing.T, l *Log, name string) error {
	t.Helper()
	return l.Write(t.Context(), Record{Event: EventSeed, Outcome: OutcomeDone, Name: name})
}

// wantChain checks that files hold one chain, the oldest first, in which these come.
func wantChain(t *testing.T, records uint64, has []string, paths ...string) {
	t.Helper()
	var all []byte
	for _, path := range paths {
		all = append(all, content(t, path)...)
	}
	f, err := Verify(bytes.NewReader(all))
	if err != nil || f.Records != records || f.Torn != 0 {
		t.Errorf("%+v %v\n%s", f, err, all)
	}
	for _, text := range has {
		if !bytes.Contains(all, []byte(text)) {
			t.Errorf("there is no %s in\n%s", text, all)
		}
	}
}

// TestAFullDiskIsTriedAgain: the rest of a failed line is cut off, and once there is room the chain
// continues.
func TestAFullDiskIsTriedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l, said := opened(t, path)
	if err := seed(t, l, "a"); err != nil {
		t.Fatal(err)
	}
	disk := &badDisk{file: l.file, room: l.end + 20}
	l.file = disk
	for range 3 {
		if err := seed(t, l, "lost"); !errors.Is(err, syscall.ENOSPC) || l.Err() == nil {
			t.Errorf("on a full disk: %v, and then %v", err, l.Err())
		}
	}
	disk.room = 1 << 20
	if err := errors.Join(seed(t, l, "b"), l.Err()); err != nil {
		t.Errorf("there is room again: %v", err)
	}
	wantChain(t, 3, []string{`"a"`, EventTorn, `"b"`}, path)
	if n := strings.Count(said.String(), "cannot be written"); n != 1 {
		t.Errorf("it is said %d times:\n%s", n, said)
	}
}

// TestADiskThatHangs delays no caller beyond its context, nor Close, and once it answers all
// continues.
func TestADiskThatHangs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	synctest.Test(t, func(t *testing.T) {
		l, err := Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		disk := &badDisk{file: l.file, room: 1 << 20, hangs: make(chan struct{})}
		l.file = disk
		began := time.Now()
		for i := range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			err := l.Write(ctx, Record{Event: EventSeed, Outcome: OutcomeIntended, Name: "late"})
			cancel()
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != time.Duration(i+1)*2*time.Second {
				t.Errorf("after %s: %v", took, err)
			}
		}
		if l.Err() == nil {
			t.Error("a write hangs, and nothing is said")
		}
		if err := l.Close(); err == nil || time.Since(began) > 8*time.Second {
			t.Errorf("closed after %s: %v", time.Since(began), err)
		}
		close(disk.hangs)
		synctest.Wait()
		if err := errors.Join(seed(t, l, "b"), l.Err(), l.Close()); err != nil {
			t.Error(err)
		}
	})
	// Who had no turn wrote nothing.
	wantChain(t, 2, []string{`"late"`, `"b"`}, path)
}

// TestRotation: whatever a program does to the file, no record is lost from sight, the next file
// continues the chain, and a log opens with it again.
func TestRotation(t *testing.T) {
	for name, c := range map[string]struct {
		rotate func(path string) error
		// kept means that the old lines are in PATH.1.
		kept bool
	}{
		"renamed": {func(path string) error { return os.Rename(path, path+".1") }, true},
		"renamed, and a new one made": {func(path string) error {
			return errors.Join(os.Rename(path, path+".1"), os.WriteFile(path, nil, 0o600))
		}, true},
		"copied, and truncated": {func(path string) error {
			data, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path+".1", data, 0o600), os.Truncate(path, 0))
		}, true},
		"removed": {os.Remove, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			l, said := opened(t, path)
			if err := errors.Join(seed(t, l, "a"), seed(t, l, "b")); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(c.rotate(path), l.Reopen(t.Context()), seed(t, l, "c"), l.Close()); err != nil {
				t.Fatal(err)
			}
			if strings.Count(said.String(), "its chain continues") != 1 {
				t.Errorf("nothing is said of it:\n%s", said)
			}
			wantChain(t, 4, []string{EventContinued, `"c"`}, path)
			if c.kept {
				wantChain(t, 4, []string{`"a"`, EventContinued}, path+".1", path)
			}
			if err := appendTo(path, Record{Event: EventRecover, Outcome: OutcomeDone}); err != nil {
				t.Error(err)
			}
			if f, err := Verify(bytes.NewReader(content(t, path))); err != nil || f.Earlier != 2 || f.Records != 5 {
				t.Errorf("%+v %v", f, err)
			}
		})
	}
}

// TestALogThatWasCutIsNotGoneOnWith, nor another one in its place, until somebody moves it
// away.
func TestALogThatWasCutIsNotGoneOnWith(t *testing.T) {
	for name, change := range map[string]func(path string, other []byte) error{
		"cut": func(path string, _ []byte) error { return os.Truncate(path, 100) },
		"another": func(path string, other []byte) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, other, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			l, _ := opened(t, path)
			if err := errors.Join(seed(t, l, "a"), change(path, content(t, written(t, "x")))); err != nil {
				t.Fatal(err)
			}
			before := content(t, path)
			for range 2 {
				if err := seed(t, l, "b"); !errors.Is(err, ErrBroken) || l.Err() == nil {
					t.Errorf("%v", err)
				}
			}
			if !bytes.Equal(content(t, path), before) {
				t.Error("the file was changed")
			}
			if err := errors.Join(os.Rename(path, path+".bad"), seed(t, l, "b")); err != nil {
				t.Error(err)
			}
			wantChain(t, 3, []string{EventContinued, `"b"`}, path)
		})
	}
}

// TestTail: the newest whole lines, also of a file that ends with a torn one, or is long.
func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l, _ := opened(t, path)
	wantTail := func(n int, want ...string) {
		t.Helper()
		lines, err := l.Tail(t.Context(), n)
		if err != nil || len(lines) != len(want) {
			t.Fatalf("%d lines, want %q, %v", len(lines), want, err)
		}
		for i, name := range want {
			if !bytes.Contains(lines[i], []byte(`"name":"`+name+`"`)) {
				t.Errorf("line %d is %.200s, want that of %s", i, lines[i], name)
			}
		}
	}
	wantTail(3)
	for _, name := range []string{"a", "b", "c"} {
		if err := seed(t, l, name); err != nil {
			t.Fatal(err)
		}
	}
	wantTail(2, "b", "c")
	wantTail(9, "a", "b", "c")
	if err := seed(t, l, strings.Repeat("x", tailBytes)); err != nil {
		t.Fatal(err)
	}
	wantTail(9) // A part of a line is none.
	if err := seed(t, l, "d"); err != nil {
		t.Fatal(err)
	}
	torn, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = torn.Close() }()
	if _, err := torn.WriteString(`{"seq":9,"na`); err != nil {
		t.Fatal(err)
	}
	wantTail(9, "d")
}
