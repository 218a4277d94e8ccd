package node

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestANodeWhoseRaftHangsIsNotAlive, and is again once Raft goes on. It hangs at the line that
// it logs when it is elected: the log of the program never makes it wait.
func TestANodeWhoseRaftHangsIsNotAlive(t *testing.T) {
	t.Parallel()
	c := configs(t, "A")["A"]
	c.StorageWatchdog = 1500 * time.Millisecond
	goOn := make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	log := slog.New(hangingHandler{slog.DiscardHandler, "entering leader state", goOn})
	n := runWith(t, Options{Config: c, Logger: log})
	t.Cleanup(release) // Before the node is stopped.
	n.until("it says that it hangs", func() bool {
		status, text := n.get("/livez")
		return status == http.StatusServiceUnavailable && strings.Contains(text, "main goroutine has hung")
	})
	release()
	n.until("it is alive again", func() bool { status, _ := n.get("/livez"); return status == http.StatusOK })
	n.ready()
}

// hangingHandler does not return from one line before goOn is closed.
type hangingHandler struct {
	slog.Handler
	line string
	goOn <-chan struct{}
}

func (hangingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h hangingHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.line {
		<-h.goOn
	}
	return nil
}

func (h hangingHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
