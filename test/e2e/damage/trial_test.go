package damage

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/idnode/idnode/cluster/store"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/node"
)

// What became of a damage.
const (
	noticed  = "noticed"  // the node ended with DATA_LOSS
	harmless = "harmless" // everything the node can read is as it was
	silent   = "SILENT"   // neither
	unclear  = "UNCLEAR"  // the node ended, and did not say DATA_LOSS
	crashed  = "CRASHED"  // the process ended without a word
)

// result is the outcome of the damage with a number.
type result struct {
	Number           uint64
	File, Kind, What string
	Outcome, Text    string
}

// trialOf names, in the environment of a process of this program, the file with
// the past whose damages it tries; trialSeed and trialFrom say which ones.
const (
	trialOf   = "IDNODE_DAMAGE_TRIAL"
	trialSeed = "IDNODE_DAMAGE_TRIAL_SEED"
	trialFrom = "IDNODE_DAMAGE_TRIAL_FROM"
	trialTo   = "IDNODE_DAMAGE_TRIAL_TO"
)

// beTrial tries damages and prints a result each, if this process was started for
// that. A damage may end the process: bbolt meets some with a panic on a
// goroutine of its own, and a map of a file that was cut short with a signal.
func beTrial() bool {
	name := os.Getenv(trialOf)
	if name == "" {
		return false
	}
	if err := trials(name); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func trials(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	p := &past{}
	if err := json.Unmarshal(text, p); err != nil {
		return err
	}
	var numbers [3]uint64
	for i, variable := range []string{trialSeed, trialFrom, trialTo} {
		if numbers[i], err = strconv.ParseUint(os.Getenv(variable), 10, 64); err != nil {
			return err
		}
	}
	out := json.NewEncoder(os.Stdout)
	for i := numbers[1]; i < numbers[2]; i++ {
		d, err := p.draw(rand.New(rand.NewPCG(numbers[0], i)))
		if err != nil {
			return err
		}
		r := result{Number: i, File: d.file, Kind: d.kind, What: d.String()}
		if err := out.Encode(r); err != nil { // should it end the process
			return err
		}
		if r.Outcome, r.Text, err = p.try(d); err != nil {
			return err
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// try opens a damaged directory as a node does. If it opens, everything in it is
// read and compared.
func (p *past) try(d damage) (outcome, text string, err error) {
	dir, err := os.MkdirTemp(scratch(), "idnode-trial-")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(dir)
	spoilt := func(name string) (string, error) {
		to := filepath.Join(dir, name)
		return to, errors.Join(os.CopyFS(to, os.DirFS(p.Last[d.tag])), d.do(to))
	}
	first, err := spoilt("first")
	if err != nil {
		return "", "", err
	}
	if err := p.open(first, d.tag); err != nil {
		return verdict(err), err.Error(), nil
	}
	// What opening changes is no part of the question.
	second, err := spoilt("second")
	if err != nil {
		return "", "", err
	}
	got, err := p.contentsOf(second)
	switch {
	case errors.Is(err, store.ErrCorrupt):
		// The node reads all this when Raft starts, before it answers others.
		return noticed, err.Error(), nil
	case err != nil:
		return unclear, err.Error(), nil
	case got != p.Contents[d.tag]:
		return silent, "its contents changed", nil
	}
	return harmless, "", nil
}

func verdict(err error) string {
	var loss *node.DataLossError
	if errors.As(err, &loss) {
		return noticed
	}
	return unclear
}

// open puts a node together on the directory. One that opens stays open until the
// process ends.
func (p *past) open(dir, tag string) error {
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.AddFlags(flags)
	args := []string{
		"--data-dir", dir, "--tag", tag,
		"--grpc", "127.0.0.1:0", "--raft", "127.0.0.1:0", "--http", "",
	}
	for i, peer := range p.Tags {
		args = append(args, "--peer", fmt.Sprintf("%s=127.0.0.1:%d", peer, i+1)) // no peer is called
	}
	if len(p.Tags) == 1 {
		args = append(args, "--single-node")
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	cfg, err := config.Load(flags, nil)
	if err != nil {
		return err
	}
	_, err = node.New(node.Options{Config: cfg})
	return err
}
