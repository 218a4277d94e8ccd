package damage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/idnode/idnode/test/tier"
)

const (
	// fewDamages is how many are tried unless the environment says more.
	fewDamages = 240
	// batch is how many one process tries.
	batch = 40
	// beside is how many processes try at once.
	beside = 3
)

// TestDamage tries damages to the files of each node of a cluster with a past.
func TestDamage(t *testing.T) {
	tier.Long(t)
	seed, all := seed(t), number(t, "IDNODE_DAMAGES", fewDamages)
	results := makePast(t).tryAll(t, seed, all)
	note(results)
	for _, r := range results {
		if r.Outcome != noticed && r.Outcome != harmless {
			t.Errorf("damage %d, %s: %s: %s", r.Number, r.What, r.Outcome, r.Text)
		}
	}
	t.Log("\n" + summary(results))
}

// tryAll tries the damages with the numbers below count, in processes of this
// program.
func (p *past) tryAll(t *testing.T, seed, count uint64) []result {
	t.Helper()
	name := filepath.Join(t.TempDir(), "past.json")
	text, err := json.Marshal(p)
	if err == nil {
		err = os.WriteFile(name, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	results := make([]result, count)
	var next sync.Mutex
	from := uint64(0)
	take := func() (a, b uint64) {
		next.Lock()
		defer next.Unlock()
		a, b = from, min(from+batch, count)
		from = b
		return a, b
	}
	var workers sync.WaitGroup
	for range beside {
		workers.Go(func() {
			for a, b := take(); a < b; a, b = take() {
				if err := tryBatch(name, seed, a, results[a:b]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	return results
}

// tryBatch fills in results, which begin with the damage numbered from. A process
// that a damage ends is followed by one that tries the rest.
func tryBatch(name string, seed, from uint64, results []result) error {
	for done := 0; done < len(results); {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), trialOf+"="+name, fmt.Sprintf("%s=%d", trialSeed, seed),
			fmt.Sprintf("%s=%d", trialFrom, from+uint64(done)), fmt.Sprintf("%s=%d", trialTo, from+uint64(len(results))))
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		lines := json.NewDecoder(bytes.NewReader(out))
		begun := result{}
		for r := (result{}); lines.Decode(&r) == nil; r = (result{}) {
			if begun = r; r.Outcome != "" {
				results[done] = r
				done++
			}
		}
		if err == nil {
			continue
		}
		if begun.Kind == "" || begun.Outcome != "" {
			return fmt.Errorf("a process that tries damages: %w\n%s", err, stderr.Bytes())
		}
		begun.Outcome, begun.Text = crashed, firstLine(stderr.String())
		results[done] = begun
		done++
	}
	return nil
}
