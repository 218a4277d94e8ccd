package raftlogger_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/idnode/idnode/cluster/raftlogger"
)

// record logs with the given function at the given slog level, and returns the
// line as decoded JSON without its time; nil if nothing was logged.
func record(t *testing.T, level slog.Level, log func(hclog.Logger)) map[string]any {
	t.Helper()
	var out bytes.Buffer
	log(raftlogger.New(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: level}))))
	if out.Len() == 0 {
		return nil
	}
	line := map[string]any{}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v in %q", err, out.String())
	}
	delete(line, "time")
	return line
}

func TestLinesAreTranslated(t *testing.T) {
	for _, c := range []struct {
		name  string
		level slog.Level
		log   func(hclog.Logger)
		want  map[string]any
	}{
		{
			"level and values", slog.LevelInfo,
			func(l hclog.Logger) { l.Warn("heartbeat timeout reached", "last-leader-id", "x", "n", 3) },
			map[string]any{"level": "WARN", "msg": "heartbeat timeout reached", "last-leader-id": "x", "n": 3.0},
		},
		{
			"names and implied values", slog.LevelInfo,
			func(l hclog.Logger) { l.Named("raft").Named("net").With("id", 7).Info("hello", "a", "b") },
			map[string]any{"level": "INFO", "msg": "hello", "source": "raft.net", "id": 7.0, "a": "b"},
		},
		{
			"lazy format", slog.LevelInfo,
			func(l hclog.Logger) { l.Info("servers", "servers", hclog.Fmt("%d of %s", 2, "x")) },
			map[string]any{"level": "INFO", "msg": "servers", "servers": "2 of x"},
		},
		{
			"errors, bytes, stringers", slog.LevelInfo,
			func(l hclog.Logger) {
				l.Error("bad", "error", errors.New("no"), "raw", []byte("bytes"), "for", 2*time.Second)
			},
			map[string]any{"level": "ERROR", "msg": "bad", "error": "no", "raw": "bytes", "for": "2s"},
		},
		{
			"a value without a key", slog.LevelInfo,
			func(l hclog.Logger) { l.Info("odd", "a", "b", "alone") },
			map[string]any{"level": "INFO", "msg": "odd", "a": "b", "!BADKEY": "alone"},
		},
		{
			"below the level", slog.LevelInfo,
			func(l hclog.Logger) { l.Debug("quiet"); l.Trace("quieter") },
			nil,
		},
		{
			"everyday errors are demoted", slog.LevelInfo,
			func(l hclog.Logger) { l.Error("failed to heartbeat to", "peer", "b") },
			nil,
		},
		{
			"everyday errors are kept at debug", slog.LevelDebug,
			func(l hclog.Logger) { l.Error("failed to appendEntries to", "peer", "b") },
			map[string]any{"level": "DEBUG", "msg": "failed to appendEntries to", "peer": "b"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, record(t, c.level, c.log)); diff != "" {
				t.Errorf("line (-want +got):\n%s", diff)
			}
		})
	}
}
