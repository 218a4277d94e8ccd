package webpage

import (
	"fmt"
	"strings"
	"time"

	"github.com/idnode/idnode/server/service"
)

// alarm is something that is wrong with the cluster now, as far as this node knows by
// itself: it keeps no history, so what an alert rule tells from that is not among them.
type alarm struct {
	// Name is that of the rule in deploy/prometheus; empty if there is none.
	Name string `json:"name"`
	// Runbook is where it is said what to do; empty without a name.
	Runbook  string `json:"runbook"`
	Critical bool   `json:"critical"`
	Title    string `json:"title"`
	Text     string `json:"text"`
	// Millis is for how long it has been so; 0 if that is not known.
	Millis int64 `json:"millis"`
}

// The bounds are those of the rules with the same names: by how many log entries a
// member is behind, and for how long a certificate is still valid.
const (
	lagging           = 5000
	day               = 24 * time.Hour
	certificateEnding = 14 * day
	certificateNow    = 2 * day
)

// runbook has a heading for each rule.
const runbook = "/docs/operate/alarms.md#"

// alarmsOf returns what is wrong, the worst first.
func alarmsOf(s service.Status) []alarm {
	all := []alarm{}
	add := func(on bool, a alarm) {
		if on {
			if a.Name != "" {
				a.Runbook = runbook + strings.ToLower(a.Name)
			}
			all = append(all, a)
		}
	}
	add(!s.HasQuorum, noQuorum(s))
	add(s.HasQuorum && s.LeaderTag == "", alarm{
		Name: "IdnodeNoLeader", Critical: true, Title: "No leader.",
		Text: "A majority of the voters is in reach, but none of them is known to lead.",
	})
	if s.Unserved != nil && s.LeaderTag != "" {
		add(true, alarm{
			Name: "IdnodeLogNotServed", Critical: true, Title: "The leader does not serve this node.",
			Text: "This node: " + s.Unserved.Error() + ". " + refused(s),
		})
	}
	if full, means := s.FullDisks(); full != "" {
		add(true, alarm{
			Name: "IdnodeStorageFull", Critical: s.RefusesForStorage(), Title: "A disk is nearly full: " + full + ".",
			Text: upper(means) + ". Make room there, in bytes and in inodes; it goes on by itself within seconds.",
		})
	}
	if differing := s.TagsWith(func(m service.Condition) bool { return m.StateDiffers }); differing != "" {
		add(true, alarm{
			Name: "IdnodeStateDiverged", Critical: true, Title: "Another state on " + differing + ".",
			Text: "After the same log entry it is not that of this node. The node whose state is the wrong one ends by itself; rebuild it as its " +
				"last line says.",
		})
	}
	for _, m := range s.Members {
		add(!m.Reachable() && m.SilentFor > 0, alarm{
			Name: "IdnodeMemberUnreachable", Title: "Member " + m.Tag + " does not answer.",
			Text:   unreachable(s, m),
			Millis: m.SilentFor.Milliseconds(),
		})
		add(m.Behind > lagging, alarm{
			Name: "IdnodeLagging", Title: "Member " + m.Tag + " lags.",
			Text: fmt.Sprintf("It is more than %d log entries behind. ", lagging) +
				"It catches up by itself after a restart; if it does not, its disk or processor is too slow.",
		})
		if at := m.CertificateExpiresAt(); !at.IsZero() && time.Until(at) < certificateEnding {
			add(true, certificateEnds(m, at))
		}
	}
	if r := s.Reserve; r.Short() {
		add(true, alarm{
			Name: "IdnodeReserveShort", Title: "The reserve of HiLo ranges runs short.",
			Text: fmt.Sprintf("A tag has numbers for %s at its rate, and should have them for %s. ", r.Lasts.Round(time.Second), r.For) +
				"The command idnode hilo reserves names it.",
		})
	}
	for _, warning := range s.Warnings {
		add(true, alarm{Title: "Warning.", Text: warning})
	}
	return all
}

func noQuorum(s service.Status) alarm {
	known := ""
	if voters, reachable := votersOf(s); voters > 0 {
		known = fmt.Sprintf(" (%d of %d in reach, %d needed)", reachable, voters, voters/2+1)
	}
	return alarm{
		Name: "IdnodeNoQuorum", Critical: true, Title: "No quorum.",
		Text: "This node is not in touch with a majority of the voters" + known + ". " +
			refused(s) + " Bring back enough of those that are missing; Recovery says what to do if they are gone for good.",
		Millis: s.QuorumMissing.Milliseconds(),
	}
}

func refused(s service.Status) string {
	if s.Reserve == nil || s.Reserve.Numbers == 0 {
		return "It refuses identities, HiLo ranges, claims and seeds; server-side ids and GUIDs go on."
	}
	return "It refuses identities, claims and seeds; server-side ids and GUIDs go on, and HiLo ranges as long as its reserve lasts."
}

// unreachable says where a member does not answer, and what can be done: without a leader nobody is removed.
func unreachable(s service.Status, m service.Member) string {
	text := ""
	if m.Problem != "" {
		text = "It does not answer " + m.Problem + ". "
	}
	switch {
	case !s.HasQuorum, s.LeaderTag == "", s.Unserved != nil:
		return text + "See whether it runs, and the network between it and this node."
	case !votes(m):
		return text + "It has no vote, so no quorum needs it. If its machine is gone for good, remove it."
	}
	return text + "Until it is back one node fewer may fail. If its machine is gone for good, remove it and let another join."
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func certificateEnds(m service.Member, at time.Time) alarm {
	left := time.Until(at)
	a := alarm{
		Name: "IdnodeCertificateEnds", Title: fmt.Sprintf("The certificate of member %s ends within %d days.", m.Tag, left/day+1),
		Text: fmt.Sprintf("Put a new one in place of its files before %s: the node takes it without a restart.",
			at.UTC().Format(time.DateOnly)),
	}
	if left < certificateNow {
		a.Name, a.Critical = "IdnodeCertificateEndsNow", true
	}
	if left < 0 {
		a.Title, a.Text = "The certificate of member "+m.Tag+" has ended.", "Others refuse it. Put a new one in place of its files: the node "+
			"takes it without a restart."
	}
	return a
}
