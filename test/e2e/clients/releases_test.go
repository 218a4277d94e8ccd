package clients

import (
	"path/filepath"
	"testing"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// few callers do: what is asked is whether the releases understand each other.
const few = 8

// TestClientsOfTwoReleases: the clients of the newest release take values and HiLo ids from nodes of this source, and
// those of this source from nodes of the release, while a leader is killed: no number comes twice, none is missing, and
// no call fails.
func TestClientsOfTwoReleases(t *testing.T) {
	tier.Long(t)
	for name, beside := range map[string]struct{ program, source string }{
		"released clients": {harness.Binary(t), filepath.Join(harness.ReleasedSource(t), "clients")},
		"released nodes":   {harness.Released(t), folder},
	} {
		t.Run(name, func(t *testing.T) {
			all := t // Its nodes live as long as it.
			c := harness.StartCluster(t, harness.Config{Program: beside.program})
			eachLanguage(t, func(t *testing.T, l language) {
				l.source = beside.source
				b := &book{ids: make(map[string]bool)}
				stop := l.load(t, c, "", load{Callers: few, Client: 1, Name: "called by " + l.name, Tag: l.name}, b.add)
				b.await(t, 200)
				leader := c.Leader(t)
				leader.Process.Kill()
				b.await(t, 200)
				leader.Start(all)
				c.WaitReady(t)
				stop()
				b.judge(t)
			})
			c.Agree(t)
		})
	}
}
