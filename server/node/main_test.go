package node

import (
	"os"
	"testing"

	"github.com/idnode/idnode/test/tier"
)

func TestMain(m *testing.M) {
	tier.Overlap()
	os.Exit(m.Run())
}
