package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestCalmLeavesOutExpectedWarnings(t *testing.T) {
	var out bytes.Buffer
	base := newLogger(&out, slog.LevelWarn, "text")
	h := newCalm(base.Handler())
	// Loggers made before and after a change share it.
	early := slog.New(h).With("node", "A")
	early.Warn("starting")
	early.Error("broken")
	h.expected.Store(false)
	early.Warn("serving")
	slog.New(h).WithGroup("raft").Warn("serving too")
	early.Info("below the level")
	early.With("part", "raft").Error("the library's")
	h.expected.Store(true)
	early.Warn("stopping")
	text := out.String()
	for _, want := range []string{"broken", "msg=serving node=A", "serving too"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if n := strings.Count(text, "\n"); n != 3 {
		t.Errorf("%d lines:\n%s", n, text)
	}
}
