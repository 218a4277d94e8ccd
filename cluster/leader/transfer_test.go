package leader

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/disk"
)

// TestNoTransferWhileAWriteHangs: the library's transfer would wait for that write.
func TestNoTransferWhileAWriteHangs(t *testing.T) {
	d := disk.NewWrites(slog.New(slog.DiscardHandler))
	d.TakeIn(true)
	if err := (&Transfer{cfg: &Config{Disk: d}}).run(t.Context(), raft.Server{}); !errors.Is(err, errDiskHangs) {
		t.Errorf("a transfer while a write hangs: %v", err)
	}
}
