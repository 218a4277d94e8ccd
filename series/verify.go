package series

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// VerifyCursor is where a verification goes on. The zero value is the beginning.
type VerifyCursor struct {
	// since is that of the series: one of its name that began later is verified from its beginning.
	since  int64
	scope  int
	number int64
	// lost is the next lost key, behind all scopes.
	lost string
}

// String returns the text that ParseVerifyCursor takes.
func (c VerifyCursor) String() string {
	return fmt.Sprintf("%d:%d:%d:%s", c.since, c.scope, c.number, c.lost)
}

// ParseVerifyCursor returns the cursor that has a text; false if none has it. A cursor of
// another series is one of this series too.
func ParseVerifyCursor(s string) (c VerifyCursor, ok bool) {
	parts := strings.SplitN(s, ":", 4)
	if len(parts) != 4 {
		return c, false
	}
	since, err := strconv.ParseInt(parts[0], 10, 64)
	scope, err2 := strconv.ParseUint(parts[1], 10, 31)
	number, err3 := strconv.ParseUint(parts[2], 10, 63)
	return VerifyCursor{since, int(scope), int64(number), parts[3]}, errors.Join(err, err2, err3) == nil
}

// VerifySome looks at up to limit numbers, scopes without numbers and lost keys from a cursor on, and returns where to go on;
// false at the end. It finds the first number that is not in exactly one state, or that its key does
// not lead to, and sums of states that are wrong. The series may change between two calls. One that
// began anew is verified from its beginning. The error is *VerifyError.
func (v *View) VerifySome(at VerifyCursor, limit int) (next VerifyCursor, more bool, err error) {
	if at.since != v.since {
		at = VerifyCursor{since: v.since}
	}
	for limit > 0 && at.scope < v.scopes.len() {
		c := v.scopes.at(int32(at.scope))
		sum := c.count[Open] + c.count[Confirmed] + c.count[Voided] + c.count[Released] + c.count[Unknown]
		if sum != c.last-c.offset+c.entered.len() {
			return at, false, &VerifyError{Scope: c.values, Number: c.lastNumber(), Detail: "is the last, and the sums of the states are wrong"}
		}
		if detail := c.allotted.wrong(c.offset, c.last, v.most()); detail != "" {
			return at, false, &VerifyError{Scope: c.values, Number: c.lastNumber(), Detail: "is the last, and the allotments " + detail}
		}
		if c.empty() {
			limit--
		}
		whole := true
		for n, r := range c.above(at.number) {
			if whole = limit > 0; !whole {
				break
			}
			limit--
			at.number = n
			if detail := v.wrong(c, n, r); detail != "" {
				return at, false, &VerifyError{Scope: c.values, Number: c.numberOf(n), Detail: detail}
			}
		}
		if whole {
			at = VerifyCursor{since: v.since, scope: at.scope + 1}
		}
	}
	if at.scope < v.scopes.len() {
		return at, true, nil
	}
	at.lost, more, err = v.verifyLost(at.lost, limit)
	return at, more, err
}

// verifyLost finds a lost key that has a number among up to limit, and returns the next key, if any.
func (v *View) verifyLost(from string, limit int) (next string, more bool, err error) {
	v.lost.Ascend(from, func(key string, _ lostKey) bool {
		if limit--; limit < 0 {
			next, more = key, true
			return false
		}
		if at := v.index.find(key); at != 0 {
			c := v.scopes.at(at.scope())
			err = &VerifyError{Scope: c.values, Number: c.numberOf(at.number()), Detail: "is that of a key that has lost its number"}
		}
		return err == nil
	})
	return next, more, err
}

func (v *View) wrong(c *scope, n int64, r *record) string {
	leaf, whole := c.place(n)/leafSize, n > c.offset && c.place(n)%leafSize == 0
	switch {
	case n <= c.offset && r.state != Confirmed:
		return "is from before the scope, and not confirmed"
	case r.state < Open || r.state > Unknown:
		return "is in no state"
	case r.state == Released && v.definition.OnRelease == ReleaseReusesNewest && !c.newest(n):
		return "is released, and not one of the last"
	case r.shared && r.state != Unknown:
		return "may be another key's and is not unknown"
	case whole && c.finder != nil && c.finder.levels[0][leaf] != c.leaf(leaf):
		return "is one of some of which the lowest free or open one is not found"
	case c.waits(n, r) != (r.state == Open && r.expires != 0):
		return "has a deadline and is not open, or the other way around"
	case (r.reason() != "") != (r.state == Voided):
		return "has a reason and is not voided, or the other way around"
	case r.owner() == "" && r.state != Released && r.state != Voided && !r.shared:
		return "has no key"
	case r.owner() != "" && v.index.find(r.owner()) != refOf(c.index, n):
		return "has a key that leads elsewhere"
	}
	return ""
}
