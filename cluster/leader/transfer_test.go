package leader

import (
	"log/slog"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/disk"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestNoTransferWhileAWriteHangs: the library's transfer would wait for that write.
func TestNoTransferWhileAWriteHangs(t *testing.T) {
	d := disk.NewWrites(slog.New(slog.DiscardHandler))
	d.TakeIn(true)
	if _, err := (&Transfer{cfg: &Config{Disk: d, Record: member.NewNodeRecord(&member.Record{Tag: "A"}, member.NodeRecordConfig{})}}).
		run(t.Context(), raft.Server{}); op.RefusalOf(err).GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_NOT_TRANSFERRED {
		t.Errorf("a transfer while a write hangs: %v", err)
	}
}
