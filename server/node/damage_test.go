package node

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/store"
	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/server/config"
)

// TestDataLoss: every kind of damage has its reason and the way to rebuild the node in the
// error, once; other errors are unchanged.
func TestDataLoss(t *testing.T) {
	n := &Node{cfg: &config.Config{DataDir: "/data/b", Tag: "B"}}
	for err, reason := range map[error]string{
		member.ErrCorrupt: "DATA_LOSS", store.ErrForeign: "DATA_LOSS", etag.ErrCorrupt: "DATA_LOSS", member.ErrDiverged: "STATE_DIVERGED",
	} {
		got := n.dataLoss(n.dataLoss(fmt.Errorf("opening: %w", err)))
		var loss *DataLossError
		if !errors.As(got, &loss) || !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
			continue
		}
		for _, part := range []string{reason + ": opening: ", "idnode cluster remove B", "empty /data/b", "--join"} {
			if strings.Count(got.Error(), part) != 1 {
				t.Errorf("%q is not once in %q", part, got)
			}
		}
	}
	for _, err := range []error{nil, os.ErrPermission, store.ErrInUse, store.ErrWrite, member.ErrRemoved} {
		if got := n.dataLoss(err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}

// TestTheHintNamesNoSoundNode: with the record of node A in the place of B's, the node to
// remove is B, or unknown.
func TestTheHintNamesNoSoundNode(t *testing.T) {
	dir := t.TempDir()
	if err := (&member.Record{ID: nodeid.ID{1}, Tag: "A"}).Save(dir); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		tag  string
		err  error
		want string
	}{
		{"B", store.ErrForeign, "cluster remove B "},
		{"", store.ErrForeign, "cluster remove TAG "},
		{"", store.ErrCorrupt, "cluster remove A "},
	} {
		n := &Node{cfg: &config.Config{DataDir: dir, Tag: tt.tag}}
		if got := n.dataLoss(tt.err).Error(); !strings.Contains(got, tt.want) {
			t.Errorf("--tag %q, %v: %q is not in %q", tt.tag, tt.err, tt.want, got)
		}
	}
}
