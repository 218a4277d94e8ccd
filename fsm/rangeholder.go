package fsm

import (
	"strings"
	"time"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/hilo"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// MaxLabelBytes is the greatest length of a holder's label.
	MaxLabelBytes = 64
	// maxHolderPrincipal is how much of a caller's name is kept of each range: the state
	// has very many, and a certificate may have a long name.
	maxHolderPrincipal = 256
	// reserveLabel is the stored label of a node's reserve. No other label has a control
	// character.
	reserveLabel = "\x01"
)

// RangeHolder is who got a range.
type RangeHolder struct {
	// Label is what the caller called itself, Principal its name, or what is kept of it.
	Label, Principal string
	// Node is the tag of the node that served the caller. With Reserve it has the range
	// in reserve for callers to come.
	Node    string
	Reserve bool
	// Issued is the entry's time, to the second.
	Issued time.Time
}

// HolderOf returns who got an outstanding range; false if that is not known.
func HolderOf(o hilo.Outstanding) (RangeHolder, bool) {
	if o.Holder.Who == "" {
		return RangeHolder{}, false
	}
	node, rest, _ := strings.Cut(o.Holder.Who, "\x00")
	label, principal, _ := strings.Cut(rest, "\x00")
	h := RangeHolder{Label: label, Principal: principal, Node: node, Issued: time.Unix(o.Holder.At, 0).UTC()}
	if label == reserveLabel {
		h.Label, h.Reserve = "", true
	}
	return h, true
}

// packed returns the holder as a counter keeps it. A holder of which only the node is known takes
// few bytes.
func (h RangeHolder) packed() hilo.Holder {
	label := h.Label
	if h.Reserve {
		label = reserveLabel
	}
	who := h.Node
	if label != "" || h.Principal != "" {
		who += "\x00" + label + "\x00" + h.Principal
	}
	return hilo.Holder{Who: strings.TrimRight(who, "\x00"), At: h.Issued.Unix()}
}

func holderOf(now moment, principal []byte, next *raftlogv1.HiLoNext) (hilo.Holder, *refusal) {
	if _, invisible := docid.FirstInvisible(next.GetLabel()); invisible || len(next.GetLabel()) > MaxLabelBytes {
		return hilo.Holder{}, invalid("label", "is longer than %d bytes, or has invisible characters", MaxLabelBytes)
	}
	// What is cut off may be a part of a character, which a snapshot could not store.
	kept := strings.ToValidUTF8(string(principal[:min(len(principal), maxHolderPrincipal)]), "")
	return RangeHolder{
		Label: next.GetLabel(), Principal: kept, Node: next.GetServerTag(), Reserve: next.GetReserve(),
		Issued: time.Unix(0, now.unixNano),
	}.packed(), nil
}

// newestIsOf reports whether the newest outstanding range of a counter belongs to a principal: a
// return without a token has no other proof. A node's reserve belongs to no caller. A principal
// that is kept only in part may be another principal.
func newestIsOf(c hilo.Counter, principal []byte) bool {
	if len(c.Outstanding) == 0 {
		return false
	}
	h, _ := HolderOf(c.Outstanding[len(c.Outstanding)-1])
	return !h.Reserve && len(principal) <= maxHolderPrincipal && h.Principal == string(principal)
}

// holderMessage returns the holder of a range as a record has it.
func holderMessage(o hilo.Outstanding) *raftlogv1.RangeHolder {
	h, ok := HolderOf(o)
	if !ok {
		return nil
	}
	return &raftlogv1.RangeHolder{Label: h.Label, Principal: h.Principal, Node: h.Node, Reserve: h.Reserve, IssuedUnix: h.Issued.Unix()}
}

// restoredHolder returns the holder in a record; empty for nil.
func restoredHolder(m *raftlogv1.RangeHolder) hilo.Holder {
	if m == nil {
		return hilo.Holder{}
	}
	return RangeHolder{
		Label: m.GetLabel(), Principal: m.GetPrincipal(), Node: m.GetNode(), Reserve: m.GetReserve(),
		Issued: time.Unix(m.GetIssuedUnix(), 0),
	}.packed()
}
