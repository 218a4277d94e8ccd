package series

import (
	"fmt"
	"strings"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series/format"
)

// checkEntered refuses what no request can say of a number that a document has already.
func checkEntered(m *raftlogv1.SeriesTake) error {
	switch {
	case m.GetNumber() == 0 && m.GetBecause() == "":
		return nil
	case m.GetNumber() < 1:
		return invalid("number", "is not above zero")
	case m.GetBecause() == "" || len(m.GetBecause()) > MaxReasonBytes || !visible(m.GetBecause()):
		return invalid("because", "is not of 1 to 128 bytes without invisible characters")
	case len(m.GetKeys()) != 1:
		return invalid("keys", "are not one, and the number is one document's")
	case m.GetExpiresInNanos() != 0:
		return invalid("expires_in", "is for open numbers, and this one is confirmed")
	}
	return nil
}

// enter records that the key of a request has the number of the request, which another tool or a hand gave its
// document. The number is above the scope's last one, and those between are voided; or from before the scope; or one
// that another key may get; or an unknown one, as Reconcile confirms it. It becomes confirmed. A key that has the
// number already confirms it at most.
func (t *taking) enter(values []string) error {
	if len(t.fresh) == 0 {
		return t.enterAgain()
	}
	c, err := t.newIn(values)
	if err != nil {
		return err
	}
	number, opens := t.request.GetNumber(), int64(0)
	if t.definition.Order == OrderOneOpen {
		opens = 1
	}
	if number > t.most() {
		return invalid("number", "cannot be shown by the format")
	}
	if err := t.refuseOpen(c, opens); err != nil {
		return err
	}
	if err := t.refuseNew(c); err != nil {
		return err
	}
	switch place := c.placeOf(number); {
	case place != 0:
		return t.enterGiven(c, place)
	case number <= c.offset:
		return t.enterBefore(c)
	default:
		return t.enterAhead(c)
	}
}

// enterAgain confirms the number that the key has, if it is the request's.
func (t *taking) enterAgain() error {
	at := t.index.find(t.request.GetKeys()[0])
	c, r := t.record(at)
	if c.numberOf(at.number()) != t.request.GetNumber() {
		return conflict(t.number(c, at.number()))
	}
	if state, _ := t.stateOf(r); state.unended() {
		t.scopes.own(c.index).end(at.number(), Confirmed, "")
	}
	return nil
}

// enterGiven enters a number that the scope gave: a key may get it, or nobody has said yet who has it.
func (t *taking) enterGiven(c *scope, place int64) error {
	r := c.at(place)
	switch state, reason := t.stateOf(r); {
	case state == Unknown:
		return t.enterUnknown(c, place)
	case t.lapsed(r), state == Released && place > t.above(c):
	default:
		e := wrongState(r.key(), t.request.GetNumber(), state, reason)
		e.Field = "number"
		return e
	}
	first := t.waiting(c, place)
	if err := t.refusePassed(c, first, place, c.allotted.in(place)); err != nil {
		return err
	}
	c = t.scopes.own(c.index)
	t.void(c, first, place-1)
	t.bind(c, t.request.GetKeys()[0], place, 0)
	c.end(place, Confirmed, "")
	return nil
}

// enterUnknown is Reconcile for the request's number, which keeps its date.
func (t *taking) enterUnknown(c *scope, place int64) error {
	r, b := c.at(place), &raftlogv1.SeriesKey{Key: t.request.GetKeys()[0], Number: place}
	if t.request.Date != nil && t.date != r.date {
		return invalid("date", fmt.Sprintf("is not %s, that of the number", r.date))
	}
	if err := t.judgeReconciled(c, b); err != nil {
		return err
	}
	t.reconcile(t.scopes.own(c.index), b, "")
	return nil
}

// enterBefore enters a number from before the scope.
func (t *taking) enterBefore(c *scope) error {
	number := t.request.GetNumber()
	if above, date := t.nextDate(c, number); t.definition.Order != OrderAny && t.date > date {
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_DATE_BACK, "date",
			"date %s is after %s, that of number %d", t.date, date, above)
	}
	if err := t.refuseText(c, number); err != nil {
		return err
	}
	t.have(t.scopes.own(c.index), number)
	return nil
}

// nextDate returns the lowest number above one from before a scope that a document may have, and its date; the last date
// if there is none.
func (t *taking) nextDate(c *scope, number int64) (above int64, date format.Date) {
	for n, r := range c.entered.from(number) {
		return n, r.date
	}
	if n := c.next(0, wanted{lasting: true, kept: true, at: t.voidedBy()}); n != 0 {
		return c.numberOf(n), c.at(n).date
	}
	return 0, format.LastDate
}

// enterAhead enters a number above the last one of the scope.
func (t *taking) enterAhead(c *scope) error {
	number := t.request.GetNumber()
	place, ok := c.furthest(number)
	if !ok || number < c.lastNumber() {
		return invalid("number", fmt.Sprintf("is none that the allotments of %s can give", name(c.values)))
	}
	first := t.waiting(c, c.last+1)
	if err := t.refusePassed(c, first, place, c.holds(number)); err != nil {
		return err
	}
	if err := t.refuseText(c, number); err != nil {
		return err
	}
	c = t.scopes.begin(c)
	t.void(c, first, c.last)
	for c.lastNumber() < number {
		if at := c.addAllotted(format.FirstDate); at < place {
			c.change(at, func(r *record) {
				*r = record{taken: t.now, date: t.date, state: Voided}
				r.write("", "", t.request.GetBecause())
			})
		}
	}
	t.have(c, place)
	return nil
}

// holds returns the allotment that has a number; nil if none has.
func (c *scope) holds(number int64) *allotment {
	if !c.allotted.none() {
		for i := range c.allotted.ranges {
			if a := &c.allotted.ranges[i]; a.from <= number && number <= a.to {
				return a
			}
		}
	}
	return nil
}

// waiting returns the first of the places up to one that are voided when it is entered: with ReleaseReusesNewest those
// that wait for a key are the last.
func (t *taking) waiting(c *scope, place int64) int64 {
	lowest := max(c.offset, t.above(c))
	for t.definition.OnRelease == ReleaseReusesNewest && place-1 > lowest && c.at(place-1).state == Released {
		place--
	}
	return place
}

// refusePassed finds why a place cannot be entered when those from one on are passed over.
func (t *taking) refusePassed(c *scope, first, place int64, in *allotment) error {
	switch {
	case place-first > MaxPassed:
		return invalid("number", fmt.Sprintf("would pass over %d numbers, and one call passes over at most 10,000", place-first))
	case in != nil && t.date > in.until:
		return c.afterEnd(in, t.date)
	}
	return nil
}

// void voids the numbers of some places that wait for a key.
func (t *taking) void(c *scope, first, last int64) {
	for n := first; n <= last; n++ {
		c.end(n, Voided, t.request.GetBecause())
	}
}

// have has the key of the request have a number that no other key had.
func (t *taking) have(c *scope, place int64) {
	key := strings.Clone(t.request.GetKeys()[0])
	t.detach(key)
	c.change(place, func(r *record) {
		*r = record{taken: t.now, date: t.date, state: Confirmed}
		r.write(key, t.request.GetLabel(), "")
	})
	t.index.set(key, refOf(c.index, place))
}
