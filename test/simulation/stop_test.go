package simulation

import (
	"fmt"
	"testing"
	"time"
)

// TestAllNodesStop: nodes that are stopped at about the same moment, as a machine that is switched off
// stops its containers, end soon. A leader whose voters are gone waits for no new leader.
func TestAllNodesStop(t *testing.T) {
	for _, apart := range []time.Duration{0, 2 * time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond, time.Second} {
		for first := range 3 {
			t.Run(fmt.Sprintf("apart=%v/first=%d", apart, first), func(t *testing.T) {
				inCluster(t, 3, func(w *world, _ *client) {
					nodes := w.founders()
					for i := range nodes {
						s := nodes[(first+i)%len(nodes)]
						w.running.Go(func() {
							s.hold() // No process comes after this one.
							time.Sleep(time.Duration(i) * apart)
							p, begin := s.current(), time.Now()
							p.stop()
							<-p.gone
							if took := time.Since(begin); took > 2*time.Second {
								t.Errorf("node %s took %v to stop", s.host, took)
							}
						})
					}
					time.Sleep(10 * time.Second)
				})
			})
		}
	}
}
