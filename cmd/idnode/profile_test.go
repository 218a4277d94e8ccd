package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestProfile: the profiles of a node are files that pprof reads, which are compressed. What cannot be written is an
// error, and the next profile is taken all the same.
func TestProfile(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "file")
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := profile(t.Context(), filepath.Join(taken, "now"), time.Millisecond); err == nil {
		t.Error("it was written into a file")
	}
	if err := profile(t.Context(), filepath.Join(dir, "now"), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cpu", "heap", "goroutine"} {
		text, err := os.ReadFile(filepath.Join(dir, "now", name+".pprof"))
		if err != nil || !bytes.HasPrefix(text, []byte("\x1f\x8b")) {
			t.Errorf("%s has %d bytes, %v", name, len(text), err)
		}
	}
}
