package simulation

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/test/history"
	"github.com/idnode/idnode/test/model"
)

// shownSteps is how many steps a trace shows of those before a deviation.
const shownSteps = 50

// tracer tells the model each step that the nodes take, in one order: a step is told
// before another node can see its effect. What the model does not allow is a finding.
type tracer struct {
	world *world
	began time.Time

	mu      sync.Mutex
	cluster *model.Cluster
	// running has each machine's newest process. Those before it are heard no more.
	running map[string]*process
	names   map[string]string // of members, their machines
	steps   [shownSteps]step
	taken   int
	ended   bool
	// values are those that identities gave at a log index.
	values map[uint64][]history.Block
	// requests are digests of the newest answers by request key.
	requests map[[16]byte]uint64
}

// step is one line of a trace. It is put into words only if it is shown.
type step struct {
	at   time.Duration
	host string
	what string
	args [3]any
}

func newTracer(w *world) *tracer {
	return &tracer{
		world: w, began: time.Now(), cluster: model.NewCluster(), running: map[string]*process{}, names: map[string]string{},
		values: map[uint64][]history.Block{}, requests: map[[16]byte]uint64{},
	}
}

// take notes a step of a process, and has the model judge it.
func (t *tracer) take(p *process, what string, args [3]any, judge func(member string) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.running[p.server.host] != p {
		return
	}
	t.note(p.server.host, what, args)
	t.judged(p.server.host, judge(p.member))
}

// count returns how many steps there were.
func (t *tracer) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken
}

func (t *tracer) note(host, what string, args [3]any) {
	t.steps[t.taken%shownSteps] = step{time.Since(t.began), host, what, args}
	t.taken++
}

// judged ends the trace with what the model does not allow. What comes after it tells
// nothing new.
func (t *tracer) judged(host string, err error) {
	if err == nil {
		return
	}
	t.ended = true
	var b strings.Builder
	for i := max(0, t.taken-shownSteps); i < t.taken; i++ {
		fmt.Fprintf(&b, "\n%s", t.steps[i%shownSteps].text(t.names))
	}
	t.world.found("the model does not allow this of node %s: %s%s", host, t.named(err.Error()), b.String())
}

// named puts machines' names in the place of members' ids.
func (t *tracer) named(text string) string {
	for member, host := range t.names {
		text = strings.ReplaceAll(text, member, host)
	}
	return text
}

func (s *step) text(names map[string]string) string {
	n := strings.Count(s.what, "%")
	args := make([]any, n)
	for i := range n {
		args[i] = s.args[i]
		if host, member := names[fmt.Sprint(args[i])]; member {
			args[i] = host
		}
	}
	return fmt.Sprintf("%9.4fs  %-8s %s", s.at.Seconds(), s.host, fmt.Sprintf(s.what, args...))
}

// answered compares what a caller was answered with what was applied at that log index.
func (t *tracer) answered(caller string, index uint64, values []history.Block) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || index == 0 {
		return
	}
	t.note(caller, "is answered as of log index %d: %v", [3]any{index, values})
	t.judged(caller, t.mayAnswer(index, values))
}

func (t *tracer) mayAnswer(index uint64, values []history.Block) error {
	if applied := t.cluster.Applied(); index > applied {
		return fmt.Errorf("an answer as of log index %d, where only %d is applied", index, applied)
	}
	for _, v := range values {
		if !within(v, t.values[index]) {
			return fmt.Errorf("an answer of %v as of log index %d, which gave %v", v, index, t.values[index])
		}
	}
	return nil
}

func within(v history.Block, given []history.Block) bool {
	for _, g := range given {
		if g.First <= v.First && v.Last <= g.Last {
			return true
		}
	}
	return false
}

// entryOf is an entry of the log as the model knows it.
func entryOf(log *raft.Log) model.Entry {
	e := model.Entry{Index: log.Index, Term: log.Term, Kind: model.Other}
	switch log.Type {
	case raft.LogCommand:
		e.Kind, e.Digest = model.Command, xxhash.Sum64(log.Data)
	case raft.LogConfiguration:
		e.Kind, e.Digest, e.Voters = model.Voters, xxhash.Sum64(log.Data), votersOf(raft.DecodeConfiguration(log.Data))
	}
	return e
}

func votersOf(c raft.Configuration) (voters []string) {
	for _, s := range c.Servers {
		if s.Suffrage == raft.Voter {
			voters = append(voters, string(s.ID))
		}
	}
	return voters
}

// applying has a process begin to apply an entry.
func (t *tracer) applying(p *process, index uint64, entry []byte) {
	t.take(p, "applies %d", [3]any{index}, func(member string) error {
		return t.cluster.Apply(member, index, xxhash.Sum64(entry))
	})
}

// restored has a process's state begin with that of a snapshot.
func (t *tracer) restored(p *process, index uint64) {
	t.take(p, "restores a state as of %d", [3]any{index}, func(member string) error { return t.cluster.Restore(member, index) })
}

// applied has it answer the entry's groups.
func (t *tracer) applied(p *process, index uint64, entry []byte, results []raftlog.GroupResult) {
	decoded, err := raftlog.DecodeEntry(entry, raftlog.FormatVersion)
	if err != nil {
		return // The node ends because of it.
	}
	t.take(p, "answers %d: %v", [3]any{index, told{decoded.Groups, results}}, func(string) error {
		return t.cluster.Answer(index, digest(results), decoded.Groups, results, func(i int) error {
			return t.effect(index, decoded.Groups[i].Operations, results[i])
		})
	})
}

func digest(results []raftlog.GroupResult) uint64 {
	var d xxhash.Digest
	for _, r := range results {
		_, _ = d.Write([]byte{byte(r.Status)})
		for _, result := range r.Results {
			_, _ = d.Write(result)
		}
	}
	return d.Sum64()
}

// effect notes what a group did: sessions that it opened and closed, the values that it
// gave, and what it recorded of etags.
func (t *tracer) effect(index uint64, operations [][]byte, r raftlog.GroupResult) error {
	for i, data := range r.Results {
		result, err := op.DecodeResult(data)
		if err != nil {
			continue // It was refused.
		}
		for _, v := range result.GetIdentityNext().GetValues() {
			t.values[result.GetLogIndex()] = append(t.values[result.GetLogIndex()],
				history.Block{First: v.GetFirst(), Last: max(v.GetFirst(), v.GetLast())})
		}
		if result.GetLogIndex() == index {
			t.member(result.GetMember())
			if err := t.recorded(operations[i], data, result); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tracer) member(m *raftlogv1.MemberResult) {
	switch {
	case m.GetSession() != 0:
		t.cluster.Sessions().Open(m.GetMember().GetId(), m.GetSession())
	case m.GetMember().GetRemoved():
		t.cluster.Sessions().Close(m.GetMember().GetId())
	}
}

// told are groups and what they are answered, in words when they are shown.
type told struct {
	groups  []raftlog.Group
	results []raftlog.GroupResult
}

// String implements fmt.Stringer.
func (a told) String() string {
	var parts []string
	for i, g := range a.groups {
		status := "nothing"
		if i < len(a.results) {
			status = a.results[i].Status.String()
		}
		if g.Session == 0 {
			parts = append(parts, fmt.Sprintf("a group without a session (%s)", status))
			continue
		}
		parts = append(parts, fmt.Sprintf("group %d of session %d, acknowledged %d (%s)", g.Sequence, g.Session, g.Acknowledged, status))
	}
	return strings.Join(parts, ", ")
}
