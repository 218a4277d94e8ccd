package fsm

import (
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/fsm/table"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// claimValue is true if an identity stepped over the claimed id. Where it is false and
// the identity has passed the id, a seed, a merge or a floor may have moved the identity,
// and the id may have been issued elsewhere. It is false below the strict format.
type claimValue bool

// claimItem is an id that is claimed or may be.
type claimItem struct {
	id string
	db uint32
}

// numberedItem is a claim of the form name + separator + decimal.
type numberedItem struct {
	name      string
	value     int64
	separator rune
	db        uint32
}

func (a numberedItem) less(b numberedItem) bool {
	switch {
	case a.db != b.db:
		return a.db < b.db
	case a.name != b.name:
		return a.name < b.name
	case a.separator != b.separator:
		return a.separator < b.separator
	}
	return a.value < b.value
}

// sameIdentity reports whether two claims would be stepped over by one identity under one
// separator.
func (a numberedItem) sameIdentity(b numberedItem) bool {
	return a.db == b.db && a.separator == b.separator && a.name == b.name
}

// numbered returns the item's form as name, separator and value, if it has it.
func (a claimItem) numbered() (numberedItem, bool) {
	name, separator, value, ok := docid.SplitNumbered(a.id)
	if !ok {
		name, separator, value, ok = splitSeeded(a.id)
	}
	if !ok {
		return numberedItem{}, false
	}
	r, _ := utf8.DecodeRuneInString(separator)
	return numberedItem{db: a.db, name: name, separator: r, value: value}, true
}

// splitSeeded is docid.SplitNumbered for a value at or below 0, which an identity
// has only after a seed by force.
func splitSeeded(id string) (name, separator string, value int64, ok bool) {
	if minus := strings.LastIndexByte(id, '-'); minus >= 0 {
		digits := id[minus+1:]
		name, separator, value, ok = docid.SplitNumbered(id[:minus] + digits)
		if ok && strconv.FormatInt(value, 10) == digits {
			return name, separator, -value, true
		}
	}
	head, zero := strings.CutSuffix(id, "0")
	name, separator, value, ok = docid.SplitNumbered(head + "1")
	return name, separator, 0, ok && zero && value == 1
}

// counts reports whether an identity steps over the item, and may have issued it. Below
// the strict format that is so for values above 0 only.
func (c *contents) counts(n numberedItem) bool { return n.value > 0 || c.strict() }

// numberedFrom yields the claimed values of one identity and separator,
// ascending, from the item's value on.
func (c *contents) numberedFrom(from numberedItem) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		c.numbered.Ascend(from, func(item numberedItem) bool {
			return item.sameIdentity(from) && yield(item.value)
		})
	}
}

// addClaim stores a claim that does not exist.
func (c *contents) addClaim(item claimItem, steppedOver claimValue) {
	c.claims.Insert(table.Entry[claimValue]{Database: item.db, Name: item.id, Value: steppedOver})
	if n, ok := item.numbered(); ok {
		n.name = strings.Clone(n.name) // It is part of a message that should not live on.
		c.numbered.Set(n)
	}
	c.countName(item.db, item.id, 1)
	c.stored.add(hashClaim(item, steppedOver))
}

// stepOver marks the claims of one identity and separator, from the item's value up
// to last: a Next stepped over them.
func (c *contents) stepOver(from numberedItem, last int64) {
	for value := range c.numberedFrom(from) {
		if value > last {
			return
		}
		item := claimItem{db: from.db, id: from.name + string(from.separator) + strconv.FormatInt(value, 10)}
		if ref, ok := c.claims.Find(item.db, item.id); ok && !bool(c.claims.Value(ref)) {
			c.stored.remove(hashClaim(item, false))
			c.claims.Set(ref, true)
			c.stored.add(hashClaim(item, true))
		}
	}
}

// removeClaim removes a claim that exists.
func (c *contents) removeClaim(item claimItem, ref table.Ref) {
	c.stored.remove(hashClaim(item, c.claims.Value(ref)))
	c.claims.Delete(ref)
	if n, ok := item.numbered(); ok {
		c.numbered.Delete(n)
		c.full.forget(n)
	}
	c.countName(item.db, item.id, -1)
}

// claim claims an id: the first one wins.
func (c *contents) claim(dst []byte, o *op.Operation) ([]byte, *refusal) {
	var claim raftlogv1.Claim
	if err := decodePayload(o, &claim); err != nil {
		return dst, err
	}
	if err := checkClaim(o, claim.GetId()); err != nil {
		return dst, err
	}
	item := claimItem{db: c.databaseNumber(o), id: claim.GetId()}
	if err := c.checkFree(item); err != nil {
		return dst, err
	}
	if err := c.checkNew(o, settingMaxClaims, c.claims.Len(), "id", item.id); err != nil {
		return dst, err
	}
	c.useDatabase(o)
	c.addClaim(item, c.dropReleased(item))
	return dst, nil
}

// checkClaim refuses a request with a bad database or id.
func checkClaim(o *op.Operation, id string) *refusal {
	if err := checkDatabase(o); err != nil {
		return err
	}
	return checkText("id", id, docid.MaxIDBytes)
}

// checkFree refuses an id that is claimed, or that an identity has issued. The state does
// not know under which separators an identity was used, so a value counts as issued under
// each of them. Deleting an identity does not take back issued values.
func (c *contents) checkFree(item claimItem) *refusal {
	if _, ok := c.claims.Find(item.db, item.id); ok {
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_ID_CLAIMED, "id", "%q is claimed already", item.id)
	}
	if _, ok := c.released.Find(item.db, item.id); ok {
		return nil
	}
	n, ok := item.numbered()
	if !ok || !c.counts(n) {
		return nil
	}
	// An unknown identity may have issued values up to the floor, if there is one.
	if f := c.findIdentity(n.db, n.name); (f.exists || f.last > 0) && n.value <= f.last {
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_ID_CLAIMED, "id",
			"%q was issued: identity %q stands at %d", item.id, n.name, f.last)
	}
	return nil
}

// release gives a claimed id free.
func (c *contents) release(dst []byte, o *op.Operation) ([]byte, *refusal) {
	var release raftlogv1.Release
	if err := decodePayload(o, &release); err != nil {
		return dst, err
	}
	if err := checkClaim(o, release.GetId()); err != nil {
		return dst, err
	}
	item := claimItem{db: c.databaseNumber(o), id: release.GetId()}
	ref, ok := c.claims.Find(item.db, item.id)
	if !ok {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_CLAIM_NOT_FOUND, "id", "%q is not claimed", release.GetId())
	}
	steppedOver := c.claims.Value(ref)
	c.removeClaim(item, ref)
	if steppedOver {
		c.addReleased(item)
	}
	return dst, nil
}
