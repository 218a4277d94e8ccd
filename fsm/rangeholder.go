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

// HolderOf returns who got an outstanding range; nil if that is not known.
func HolderOf(o hilo.Outstanding) *raftlogv1.RangeHolder {
	if o.Holder.Who == "" {
		return nil
	}
	node, rest, _ := strings.Cut(o.Holder.Who, "\x00")
	label, principal, _ := strings.Cut(rest, "\x00")
	h := &raftlogv1.RangeHolder{Label: label, Principal: principal, Node: node, IssuedUnix: o.Holder.At}
	if label == reserveLabel {
		h.Label, h.Reserve = "", true
	}
	return h
}

// packedHolder returns the holder as a counter keeps it, empty for nil. A holder of which only the
// node is known takes few bytes.
func packedHolder(h *raftlogv1.RangeHolder) hilo.Holder {
	label := h.GetLabel()
	if h.GetReserve() {
		label = reserveLabel
	}
	who := h.GetNode()
	if label != "" || h.GetPrincipal() != "" {
		who += "\x00" + label + "\x00" + h.GetPrincipal()
	}
	return hilo.Holder{Who: strings.TrimRight(who, "\x00"), At: h.GetIssuedUnix()}
}

func holderOf(now moment, principal []byte, next *raftlogv1.HiLoNext) (hilo.Holder, *refusal) {
	if _, invisible := docid.FirstInvisible(next.GetLabel()); invisible || len(next.GetLabel()) > MaxLabelBytes {
		return hilo.Holder{}, invalid("label", "is longer than %d bytes, or has invisible characters", MaxLabelBytes)
	}
	return packedHolder(&raftlogv1.RangeHolder{
		Label: next.GetLabel(), Principal: keptPrincipal(principal), Node: next.GetServerTag(), Reserve: next.GetReserve(),
		IssuedUnix: time.Unix(0, now.unixNano).Unix(),
	}), nil
}

// keptPrincipal is the part of a caller's name that the state keeps.
func keptPrincipal(principal []byte) string {
	// The cut may fall within a character, and a snapshot could not store the rest.
	return strings.ToValidUTF8(string(principal[:min(len(principal), maxHolderPrincipal)]), "")
}

// newestIsOf reports whether the newest outstanding range of a counter belongs to a principal: a
// return without a token has no other proof. A node's reserve belongs to no caller. A principal
// that is kept only in part may be another principal.
func newestIsOf(c hilo.Counter, principal []byte) bool {
	if len(c.Outstanding) == 0 {
		return false
	}
	h := HolderOf(c.Outstanding[len(c.Outstanding)-1])
	return !h.GetReserve() && len(principal) <= maxHolderPrincipal && h.GetPrincipal() == string(principal)
}
