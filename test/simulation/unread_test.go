package simulation

import (
	"context"
	"log/slog"

	"github.com/idnode/idnode/internal/logqueue"
)

// leaveLogs has nobody read machines' logs until ctx ends, again and again: the leader's mostly,
// or all. Meanwhile another machine is down for a moment, so that there is something to log.
func (n *nemesis) leaveLogs(ctx context.Context) {
	for ctx.Err() == nil {
		sleep(ctx, settles)
		left, _ := n.leaderOrAll(ctx)
		lost := n.shuffled()[:1]
		n.world.log.Info("fault", "kind", "unread", "logs", hosts(left), "down", hosts(lost))
		n.made++
		var read []func()
		for _, s := range left {
			read = append(read, s.leaveLog())
		}
		release := n.down(lost)
		sleep(ctx, n.length())
		release()
		sleep(ctx, settles)
		for _, again := range read {
			again()
		}
	}
}

// leaveLog has nobody read what the machine's processes log before again is called.
func (s *server) leaveLog() (again func()) { return s.begin(&s.unread) }

// logReader is the other end of a process' log: a pipe without any room.
type logReader struct{ server *server }

// Write implements io.Writer. It returns when somebody reads.
func (r logReader) Write(lines []byte) (int, error) {
	r.server.mu.Lock()
	unread := r.server.unread
	r.server.mu.Unlock()
	if unread != nil {
		<-unread.Done()
	}
	return len(lines), nil
}

// messages is a slog.Handler for the queue that the product has. It writes messages alone:
// slog's own handlers hold a mutex while they write, and virtual time does not advance while
// a goroutine waits for one.
type messages struct{ to *logqueue.Queue }

// Enabled implements slog.Handler.
func (messages) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (m messages) Handle(_ context.Context, r slog.Record) error {
	_, err := m.to.Write([]byte(r.Message + "\n"))
	return err
}

// WithAttrs implements slog.Handler.
func (m messages) WithAttrs([]slog.Attr) slog.Handler { return m }

// WithGroup implements slog.Handler.
func (m messages) WithGroup(string) slog.Handler { return m }
