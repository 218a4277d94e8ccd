package series_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
	"github.com/idnode/idnode/test/tier"
)

// model is the slow and obvious series: a list of entries for each scope, searched from its
// begin. It judges the time anew in each call.
type model struct {
	d      series.Definition
	scopes map[string]*modelScope
	now    int64
	// had has the keys whose numbers others got, and whether they gave them back.
	had       map[string]had
	suspended bool
}

type had struct {
	number   int64
	released bool
}

type modelScope struct {
	place   int      // Among the scopes, in the order in which they began.
	branch  string   // In the spelling of the first number.
	offset  int64    // The last number from before the series.
	entries []*entry // Of the numbers behind it.
	before  []*entry // Those up to offset that were entered.
	closed  bool
	ranges  []*modelRange // Ascending.
}

type entry struct {
	number  int64
	of      *modelRange
	key     string
	state   series.NumberState
	reason  string
	expires int64
	date    format.Date
	// shared means that the number is unknown, and that another key may have got it.
	shared bool
}

// owner is the key that has the number.
func (e *entry) owner() string {
	if e.shared {
		return ""
	}
	return e.key
}

// unended reports whether the number's key can end it.
func (e *entry) unended() bool { return e.state == series.Open || e.state == series.Unknown }

func (e *entry) final() bool { return e.state == series.Confirmed || e.state == series.Voided }

// scopeName is that of a scope in all spellings.
func scopeName(values ...string) string { return strings.ToUpper(strings.Join(values, "/")) }

func (m *model) at(now int64) {
	m.now = max(m.now, now)
	for _, c := range m.scopes {
		for _, e := range c.entries {
			if m.expired(e) && m.d.OnExpiry == series.ExpiryVoids {
				e.state, e.reason = series.Voided, series.ReasonExpired
			}
		}
	}
}

func (m *model) expired(e *entry) bool {
	return e.state == series.Open && e.expires != 0 && e.expires <= m.now
}

// last is the last number of the scope.
func (c *modelScope) last() int64 {
	if len(c.entries) == 0 {
		return c.offset
	}
	return c.entries[len(c.entries)-1].number
}

// free reports whether another key can get an entry's number.
func (m *model) free(e *entry) bool {
	return e.state == series.Released || m.expired(e) && m.d.OnExpiry == series.ExpiryReuses
}

// keys counts the keys that have or had numbers, and their bytes.
func (m *model) keys() (count, bytes int64) {
	for key := range m.had {
		count, bytes = count+1, bytes+int64(len(key))
	}
	for _, c := range m.scopes {
		for _, e := range c.all() {
			if e.owner() != "" {
				count, bytes = count+1, bytes+int64(len(e.key))
			}
		}
	}
	return count, bytes
}

func (m *model) find(key string) (scope string, number int64, e *entry) {
	for name, c := range m.scopes {
		for _, e := range c.all() {
			if e.owner() == key {
				return name, e.number, e
			}
		}
	}
	return "", 0, nil
}

// errors of the model, by their types' names.
func (m *model) take(now int64, q series.Request) (map[string]int64, string) {
	branch, date, given, keys, in := q.Values[0], q.Date, q.DateGiven, q.Keys, q.ExpiresIn
	if m.suspended {
		return nil, "suspended"
	}
	m.at(now)
	name := scopeName(date.String()[:4], branch)
	c := m.scopes[name]
	if c == nil {
		c = &modelScope{place: len(m.scopes), branch: branch}
	}
	numbers, kept, fresh := map[string]int64{}, map[*entry]*modelScope{}, []string(nil)
	for _, key := range keys {
		scope, number, e := m.find(key)
		switch {
		case e == nil || e.state == series.Released:
			fresh = append(fresh, key)
			continue
		case scope[5:] != strings.ToUpper(branch), given && (date != e.date || scope != name):
			return nil, "conflict"
		case m.free(e):
			kept[e] = m.scopes[scope]
		}
		numbers[key] = number
	}
	if len(fresh)+len(kept) == 0 {
		return numbers, ""
	}
	if why := m.refuseEnd(in); why != "" {
		return nil, why
	}
	first := m.first(c, q, len(fresh), kept)
	if why := m.refuse(c, q, fresh, kept, first); why != "" {
		return nil, why
	}
	if len(fresh) > 0 {
		m.scopes[name] = c
	}
	expires := int64(0)
	if in == 0 {
		in = m.d.ExpiresIn
	}
	if in != 0 {
		expires = m.now + int64(in)
	}
	for e := range kept {
		e.expires = expires
	}
	for i, key := range fresh {
		if _, _, e := m.find(key); e != nil {
			e.key = ""
		}
		delete(m.had, key)
		at := first + i
		if at == len(c.entries) {
			c.add(c.next(q.Today))
		}
		e := c.entries[at]
		if e.key != "" {
			m.had[e.key] = had{e.number, e.state == series.Released}
		}
		*e = entry{number: e.number, of: e.of, key: key, state: series.Open, expires: expires, date: date}
		numbers[key] = e.number
	}
	return numbers, ""
}

// first tries every place for consecutive numbers.
func (m *model) first(c *modelScope, q series.Request, count int, kept map[*entry]*modelScope) int {
	for first := 0; ; first++ {
		ok := true
		for i := first; i < min(first+count, len(c.entries)); i++ {
			e := c.entries[i]
			ok = ok && m.free(e) && kept[e] == nil && (e.of == nil || max(q.Date, q.Today) <= e.of.until) &&
				(m.d.OnRelease != series.ReleaseReusesNewest || e.of == c.entries[len(c.entries)-1].of)
		}
		if ok {
			return first
		}
	}
}

// refuseEnd finds that a caller's end is not within the definition's.
func (m *model) refuseEnd(in time.Duration) string {
	least, most := time.Minute, series.MaxExpiresIn
	if m.d.ExpiresIn != 0 {
		least, most = min(least, m.d.ExpiresIn), m.d.ExpiresIn
	}
	if in == 0 || in >= least && in <= most {
		return ""
	}
	if least == most {
		return fmt.Sprintf("expires_in is not %v, the definition's", most)
	}
	return fmt.Sprintf("expires_in is not from %v to %v", least, most)
}

// lastDate is the greatest date of a number that is not voided at a time.
func (m *model) lastDate(c *modelScope, now int64) format.Date {
	last := format.FirstDate // A number that goes to another key binds none.
	for _, e := range c.all() {
		ended := e.state == series.Open && e.expires != 0 && e.expires <= max(now, m.now)
		if e.state != series.Voided && e.state != series.Released && !(ended && m.d.OnExpiry == series.ExpiryVoids) {
			last = max(last, e.date)
		}
	}
	return last
}

// allows reports whether a call may give a branch.
func (m *model) allows(branch string) bool {
	return len(m.d.Allowed) == 0 || slices.ContainsFunc(m.d.Allowed[0].Values, func(v string) bool { return strings.EqualFold(v, branch) })
}

func (m *model) refuse(c *modelScope, q series.Request, fresh []string, kept map[*entry]*modelScope, first int) string {
	for place := range len(m.scopes) + 1 {
		if why := m.refuseOpen(c, place, len(fresh), kept); why != "" {
			return why
		}
	}
	if len(fresh) == 0 {
		return ""
	}
	keys := len(m.had)
	for _, c := range m.scopes {
		for _, e := range c.all() {
			if e.owner() != "" {
				keys++
			}
		}
	}
	for _, key := range fresh {
		_, lost := m.had[key]
		if _, _, e := m.find(key); e == nil && !lost {
			keys++
		}
	}
	if !m.allows(q.Values[0]) {
		return fmt.Sprintf("values have %s for {branch}, which is none of %s", q.Values[0], strings.Join(m.d.Allowed[0].Values, ", "))
	}
	ahead := format.Date(m.d.MaxAheadDays)
	if !m.d.AheadGiven {
		ahead = map[bool]format.Date{true: 366, false: 1}[m.d.Order == series.OrderAny]
	}
	switch {
	case q.Date > q.Today+ahead:
		return fmt.Sprintf("date %s is after %s, and today is %s", q.Date, q.Today+ahead, q.Today)
	case m.d.Order != series.OrderAny && q.Date < m.lastDate(c, m.now):
		return "date back"
	}
	last, why := c.reach(first+len(fresh)-len(c.entries), q)
	switch {
	case m.d.MaxKeys > 0 && keys > int(m.d.MaxKeys):
		return "full"
	case why != "":
		return why
	case last > 99:
		return "width"
	}
	return ""
}

// refuseOpen judges the scope at a place: c gets fresh numbers, and each that has kept ones
// those.
func (m *model) refuseOpen(c *modelScope, place, fresh int, kept map[*entry]*modelScope) string {
	own := c
	if c.place != place {
		fresh = 0
		for _, k := range kept {
			if k.place == place {
				own = k
			}
		}
	}
	more := fresh
	for _, k := range kept {
		if k == own {
			more++
		}
	}
	if own.place != place || more == 0 {
		return ""
	}
	open := 0
	for _, e := range own.entries {
		if e.state == series.Open && !m.free(e) {
			open++
		}
	}
	limit := int(m.d.MaxOpen)
	if m.d.Order == series.OrderOneOpen {
		limit = 1
	}
	switch {
	case own.closed:
		return "closed"
	case limit > 0 && open+more > limit:
		return "too many open"
	}
	return ""
}

func (m *model) end(now int64, keys []*raftlogv1.SeriesKey, state series.NumberState, reason string, allowed func(*entry) bool) string {
	m.at(now)
	for _, b := range keys {
		_, number, e := m.find(b.Key)
		lost, wasLost := m.had[b.Key]
		if e == nil {
			number = lost.number
		}
		switch {
		case e == nil && !wasLost:
			return "unknown key"
		case b.Number != 0 && b.Number != number:
			return "other number"
		case e == nil && reason == series.ReasonReleased:
		case e == nil && lost.released:
			return "state"
		case e == nil:
			return "expired"
		case !allowed(e):
			return "state"
		}
	}
	for _, b := range keys {
		_, _, e := m.find(b.Key)
		if e == nil || !e.unended() {
			continue
		}
		if state == series.Released && (e.state == series.Unknown || !m.goesBack(e, keys)) {
			e.state, e.reason = series.Voided, reason
			continue
		}
		e.state, e.reason = state, reason
		if state != series.Voided {
			e.reason = ""
		}
	}
	return ""
}

// goesBack reports whether all numbers above an entry's are released, or are being so by the same call.
func (m *model) goesBack(e *entry, keys []*raftlogv1.SeriesKey) bool {
	if m.d.OnRelease == series.ReleaseReuses {
		return true
	}
	for _, c := range m.scopes {
		if i := slices.Index(c.entries, e); i >= 0 {
			return c.entries[len(c.entries)-1].of == e.of && !slices.ContainsFunc(c.entries[i+1:], func(above *entry) bool {
				now := slices.ContainsFunc(keys, func(b *raftlogv1.SeriesKey) bool { return b.Key == above.owner() })
				return above.state != series.Released && (above.state != series.Open || !now)
			})
		}
	}
	return false
}

// suspend leaves open what became of every number without a last state.
func (m *model) suspend() {
	m.at(m.now)
	m.suspended = true
	m.had = map[string]had{}
	keep := false
	for _, c := range m.scopes {
		keep = keep || slices.ContainsFunc(c.all(), (*entry).final)
	}
	keep = keep && m.d.OnRelease == series.ReleaseVoids && m.d.OnExpiry != series.ExpiryReuses
	for _, c := range m.scopes {
		for _, e := range c.all() {
			if e.state == series.Open || e.state == series.Released {
				e.state, e.expires, e.shared = series.Unknown, 0, !keep || e.key == ""
			}
		}
	}
}

// resume goes on behind the last numbers of years and branches.
func (m *model) resume(now int64, books []*raftlogv1.SeriesInBooks, more bool) string {
	if !m.suspended && len(books) > 0 {
		return "books are of a series that is not suspended: it gives numbers already"
	}
	for _, b := range books {
		if why := m.refuseBooks(b); why != "" {
			return "books " + why
		}
	}
	if !m.suspended {
		return ""
	}
	m.at(now)
	m.suspended = more
	for _, b := range books {
		name := scopeName(b.Scope...)
		if m.scopes[name] == nil {
			m.scopes[name] = &modelScope{place: len(m.scopes), branch: b.Scope[1]}
		}
		c := m.scopes[name]
		c.closed = c.closed || b.Closed
		year, _ := strconv.Atoi(b.Scope[0])
		date := max(m.lastDate(c, m.now), format.DateOf(year, time.January, 1))
		if b.LastDate != nil {
			date = format.Date(b.GetLastDate())
		}
		for c.last() < b.Last {
			e := c.add(c.next(format.FirstDate))
			e.state, e.date, e.shared = series.Unknown, date, true
		}
	}
	return ""
}

func (m *model) refuseBooks(b *raftlogv1.SeriesInBooks) string {
	c := m.scopes[scopeName(b.Scope...)]
	if c == nil {
		c = &modelScope{}
	}
	beyond, ordered := b.Last > c.last(), m.d.Order != series.OrderAny
	switch {
	case !c.allotted(b.Last):
		return "have a number that was not allotted"
	case b.Last > 99:
		return "have a number that the format cannot show"
	case b.LastDate != nil && format.Date(b.GetLastDate()).String()[:4] != b.Scope[0]:
		return "have a last date that is not in the scope"
	case beyond && ordered && b.LastDate == nil:
		return "have numbers beyond those that are known, and no last date"
	case beyond && ordered && format.Date(b.GetLastDate()) < m.lastDate(c, m.now):
		return "have a last date before that of a number that is known"
	}
	return ""
}

// reconcile ends unknown numbers as the books say.
func (m *model) reconcile(now int64, scope []string, books []*raftlogv1.SeriesKey, reason string) string {
	c := m.scopes[scopeName(scope...)]
	if c == nil {
		return "scope"
	}
	m.at(now)
	for _, b := range books {
		e := c.has(b.Number)
		if e == nil {
			return "numbers have one that the scope does not have"
		}
		_, _, other := m.find(b.Key)
		switch {
		case b.Key != "" && other != nil && other != e && other.state != series.Released:
			return "conflict"
		case e.state == series.Unknown && e.owner() != "" && b.Key != "" && b.Key != e.key:
			return "conflict"
		case e.state == series.Unknown, e.state == series.Confirmed && b.Key == e.key, e.state == series.Voided && b.Key == "" && e.key == "":
		default:
			return "state"
		}
	}
	for _, b := range books {
		e := c.has(b.Number)
		if e.state != series.Unknown {
			continue
		}
		if b.Key == "" {
			*e = entry{number: e.number, of: e.of, state: series.Voided, reason: reason, date: e.date}
			continue
		}
		if _, _, other := m.find(b.Key); other != nil && other != e {
			other.key = ""
		}
		delete(m.had, b.Key)
		*e = entry{number: e.number, of: e.of, key: b.Key, state: series.Confirmed, date: e.date}
	}
	return ""
}

// kinds are the names of an error's reasons.
var kinds = map[raftlogv1.RefusalReason]string{
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_KEY_CONFLICT:    "conflict",
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_SCOPE_CLOSED:    "closed",
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_DATE_BACK:       "date back",
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_TOO_MANY_OPEN:   "too many open",
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_FULL:            "full",
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_KEY_NOT_FOUND:   "unknown key",
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_EXPIRED:         "expired",
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_NUMBER_STATE:    "state",
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_SCOPE_NOT_FOUND: "scope",
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_SUSPENDED:       "suspended",
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_DIFFERS:         "differs",
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_IN_USE:          "in use",
}

// kind names the reason of an error.
func kind(err error) string {
	refused, full := (*series.Error)(nil), (*format.FullError)(nil)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &full):
		return "width"
	case !errors.As(err, &refused):
		return err.Error()
	case refused.Reason == raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY && refused.Field == "keys":
		return "other number"
	}
	return cmp.Or(kinds[refused.Reason], err.Error())
}

// says is the text of an error of a series; "" for any other error.
func says(err error) string {
	if refused := (*series.Error)(nil); !errors.As(err, &refused) {
		return ""
	}
	return err.Error()
}

// wrongField is the invalid field that an error is about; "" for any other error.
func wrongField(err error) string {
	wrong := (*series.Error)(nil)
	if !errors.As(err, &wrong) || wrong.Reason != raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_INVALID {
		return ""
	}
	return wrong.Field
}

// tick is the unit of times: the shortest end that a caller may ask for is two.
const tick = int64(30 * time.Second)

// history is one run of random calls on a series and its model.
type history struct {
	*rand.Rand
	t    *testing.T
	seed uint64
	s    *series.Series
	m    *model
	now  int64
	log  []string
	// frozen is a copy of before, and then what it was.
	frozen series.Frozen
	then   string
}

func (h *history) fail(what string, args ...any) {
	h.t.Helper()
	for _, line := range h.log {
		h.t.Log(line)
	}
	h.t.Fatalf("seed %d: %s", h.seed, fmt.Sprintf(what, args...))
}

func (h *history) one(of ...int64) int64 { return of[h.IntN(len(of))] }

func (h *history) definition() series.Definition {
	d := series.Definition{
		Format: []string{"{branch}-{year}-{number:2}", "{branch}/{year}-{number:2}"}[h.IntN(5)/4], Reset: format.ResetYear,
		ExpiresIn: time.Duration(h.one(0, 5, 20) * tick), MaxOpen: h.one(0, 0, 6), MaxKeys: h.one(0, 0, 25),
		OnRelease: series.OnRelease(h.IntN(3)), OnExpiry: series.OnExpiry(h.IntN(3)),
	}
	if d.AheadGiven = h.IntN(3) == 0; d.AheadGiven {
		d.MaxAheadDays = int32(h.one(0, 3))
	}
	if h.IntN(4) == 0 {
		d.Allowed = []*raftlogv1.SeriesAllowed{{Name: "branch", Values: [][]string{{"ab", "B"}, {"b"}}[h.IntN(2)]}}
		d.MaxLength = uint32(h.one(0, 10))
	}
	if d.OnRelease == series.ReleaseReusesNewest {
		d.OnExpiry = min(d.OnExpiry, series.ExpiryVoids)
	}
	if d.OnRelease != series.ReleaseReuses && d.OnExpiry != series.ExpiryReuses {
		d.Order = series.Order(h.IntN(3))
	}
	return d
}

func (h *history) key() string { return fmt.Sprintf("doc-%d", h.IntN(30)) }

// branch is one of two branches, in any spelling.
func (h *history) branch() string { return []string{"Ab", "aB", "AB", "B"}[h.IntN(4)] }

func (h *history) keys() (keys []string) {
	for range h.one(1, 1, 1, 2, 3, 12) {
		if key := h.key(); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (h *history) step() {
	// The clock goes back at times; the cluster's time does not.
	h.now += h.one(0, 0, 1, 3, 10, -5) * tick
	if h.m.suspended && h.IntN(4) == 0 {
		h.resume()
		return
	}
	if h.IntN(10) < 5 {
		h.take()
		return
	}
	switch h.IntN(28) {
	case 0:
		h.close()
	case 1:
		h.redefine()
	case 2:
		h.restore()
	case 3:
		h.frozen = h.s.Freeze()
		h.then = dump(h.frozen)
	case 4:
		h.log = append(h.log, fmt.Sprintf("%d: suspend", h.now))
		h.s.Suspend()
		h.m.suspend()
	case 5:
		h.resume()
	case 6, 7, 8, 9:
		h.reconcile()
	case 10:
		h.delete()
	case 11, 12, 13:
		h.allot()
	case 14, 15, 16, 17:
		h.enter()
	default:
		h.end()
	}
}

func (h *history) take() {
	q := series.Request{
		Values: []string{h.branch()}, Date: format.DateOf(2026, 12, 29) + format.Date(h.IntN(5)),
		Today:     format.DateOf(2026, 12, 29) + format.Date(h.IntN(4)),
		DateGiven: h.IntN(2) == 0, Keys: h.keys(), ExpiresIn: time.Duration(h.one(0, 0, 7) * tick), Label: []string{"", "till 7"}[h.IntN(2)],
	}
	if !q.DateGiven {
		q.Date = q.Today
	}
	want, why := h.m.take(h.now, q)
	h.log = append(h.log, fmt.Sprintf("%d: take %+v: %v %s", h.now, q, want, why))
	got, err := h.s.TakeFor(h.now, q)
	if kind(err) != why {
		h.fail("got %v, want %q", err, why)
	}
	for i, n := range got {
		if n.Key != q.Keys[i] || n.Number != want[n.Key] {
			h.fail("key %s got %+v, want %d", q.Keys[i], n, want[q.Keys[i]])
		}
	}
}

func (h *history) end() {
	var bound []*raftlogv1.SeriesKey
	for _, key := range h.keys() {
		bound = append(bound, &raftlogv1.SeriesKey{Key: key, Number: h.one(0, 0, 0, 0, 3)})
	}
	h.endAs(h.IntN(4), bound)
}

func (h *history) endAs(what int, bound []*raftlogv1.SeriesKey) {
	var why string
	var err error
	switch what {
	case 0:
		why = h.m.end(h.now, bound, series.Voided, "torn", func(e *entry) bool { return e.unended() || e.state == series.Voided })
		_, err = h.s.Void(h.now, bound, "torn")
	case 1:
		state := series.Voided
		if h.m.d.OnRelease != series.ReleaseVoids {
			state = series.Released
		}
		why = h.m.end(h.now, bound, state, series.ReasonReleased, func(e *entry) bool {
			return e.unended() || e.state == series.Released || e.reason == series.ReasonReleased
		})
		_, err = h.s.Release(h.now, bound)
	default:
		why = h.m.end(h.now, bound, series.Confirmed, "", func(e *entry) bool { return e.unended() || e.state == series.Confirmed })
		_, err = h.s.Confirm(h.now, bound)
	}
	h.log = append(h.log, fmt.Sprintf("%d: end %d %+v: %s", h.now, what, bound, why))
	if kind(err) != why {
		h.fail("got %v, want %q", err, why)
	}
}

func (h *history) close() {
	values := []string{"2026", h.branch()}
	h.m.at(h.now)
	c := h.m.scopes[scopeName(values...)]
	last, err := h.s.CloseScope(h.now, values)
	if c == nil {
		if kind(err) != "scope" {
			h.fail("closing an unknown scope: %v", err)
		}
		return
	}
	c.closed = true
	h.log = append(h.log, fmt.Sprintf("%d: close %v", h.now, values))
	if err != nil || last != c.last() {
		h.fail("closing gave %d, %v", last, err)
	}
}

// final reports whether a number is neither open nor released.
func (m *model) final(now int64) bool {
	for _, c := range m.scopes {
		for _, e := range c.all() {
			ended := e.state == series.Open && e.expires != 0 && e.expires <= max(now, m.now)
			if ended && m.d.OnExpiry == series.ExpiryVoids || e.state != series.Open && e.state != series.Released {
				return true
			}
		}
	}
	return false
}

// waiting reports whether a released number waits for another key.
func (m *model) waiting() bool {
	for _, c := range m.scopes {
		if slices.ContainsFunc(c.entries, func(e *entry) bool { return e.state == series.Released }) {
			return true
		}
	}
	return false
}

// wrongField names the part of a definition that may not be as it is asked to be, or "begins".
func (m *model) wrongField(now int64, d series.Definition, begins []*raftlogv1.SeriesBegin) string {
	fixed := m.suspended || m.final(now)
	switch {
	case fixed && d.Format != m.d.Format:
		return "format"
	case fixed && d.Order < m.d.Order:
		return "order"
	case fixed && d.OnRelease > m.d.OnRelease:
		return "on_release"
	case fixed && d.OnExpiry > m.d.OnExpiry:
		return "on_expiry"
	case d.Format == m.d.Format && d.OnRelease == series.ReleaseReusesNewest && m.d.OnRelease == series.ReleaseReuses && m.waiting():
		return "on_release"
	case d.Order != series.OrderAny && d.OnRelease == series.ReleaseReuses:
		return "on_release"
	case d.OnRelease == series.ReleaseReusesNewest && d.OnExpiry == series.ExpiryReuses:
		return "on_expiry"
	case d.Order != series.OrderAny && d.OnExpiry == series.ExpiryReuses:
		return "on_expiry"
	}
	for _, b := range begins {
		c := m.scopes[scopeName(b.Scope...)]
		as := c == nil || d.Format != m.d.Format || c.offset == b.First-1 || len(c.all()) == 0 && !c.closed && len(c.ranges) == 0
		same := c != nil && d.Format == m.d.Format && c.offset == b.First-1
		if b.First > 99 || !as || !same && !(&model{d: d}).allows(b.Scope[1]) {
			return "begins"
		}
	}
	return ""
}

// redefine changes the definition, and returns how many open numbers it forgets.
func (m *model) redefine(now int64, d series.Definition, begins []*raftlogv1.SeriesBegin) (forgets series.Forgotten) {
	m.at(now)
	if d.Format != m.d.Format {
		for _, c := range m.scopes {
			forgets.Allotments += int64(len(c.ranges))
			for _, e := range c.entries {
				if e.state == series.Open {
					forgets.Numbers++
				}
			}
		}
		m.scopes, m.had = map[string]*modelScope{}, map[string]had{}
	}
	m.d = d
	m.at(now)
	for _, c := range m.scopes {
		for _, e := range c.entries {
			if e.state == series.Released && d.OnRelease == series.ReleaseVoids {
				e.state, e.reason = series.Voided, series.ReasonReleased
			}
		}
	}
	m.begin(begins)
	return forgets
}

func (m *model) begin(begins []*raftlogv1.SeriesBegin) {
	for _, b := range begins {
		name := scopeName(b.Scope...)
		if m.scopes[name] == nil && b.First > 1 {
			m.scopes[name] = &modelScope{place: len(m.scopes), branch: b.Scope[1]}
		}
		if c := m.scopes[name]; c != nil {
			c.offset = b.First - 1
		}
	}
}

// separator is what follows the branch in the texts.
func separator(d series.Definition) string { return d.Format[len("{branch}"):][:1] }

func (h *history) begins() (begins []*raftlogv1.SeriesBegin) {
	for _, year := range []string{"2026", "2027"} {
		if h.IntN(4) == 0 {
			begins = append(begins, &raftlogv1.SeriesBegin{Scope: []string{year, h.branch()}, First: h.one(1, 2, 3, 60, 90, 100)})
		}
	}
	return begins
}

func (h *history) redefine() {
	d, version := h.s.Definition()
	next, begins := h.definition(), h.begins()
	if h.IntN(2) == 0 { // A stricter one.
		next.Format = d.Format
		next.OnRelease, next.OnExpiry, next.Order = min(d.OnRelease, next.OnRelease), min(d.OnExpiry, next.OnExpiry), max(d.Order, next.Order)
	}
	field := h.m.wrongField(h.now, next, begins)
	h.log = append(h.log, fmt.Sprintf("%d: redefine %+v, %+v: %s", h.now, next, begins, field))
	forgets, preview := h.s.At(h.now).Preview(next, version, begins...)
	err := h.s.Redefine(h.now, next, version, begins...)
	if kind(err) != kind(preview) {
		h.fail("the preview said %v, and then it was %v", preview, err)
	}
	if field != "" {
		if wrongField(err) != field {
			h.fail("got %v, want %s to be wrong", err, field)
		}
		return
	}
	if want := h.m.redefine(h.now, next, begins); err != nil || forgets != want {
		h.fail("forgets %+v, %v, want %+v", forgets, err, want)
	}
	if !h.s.Repeats(next, version, begins...) {
		h.fail("the same call again would change something")
	}
}

// delete has another series take the place of one that may be deleted.
func (h *history) delete() {
	_, version := h.s.Definition()
	why := ""
	switch {
	case h.m.suspended:
		why = "suspended"
	case h.m.final(h.now):
		why = "in use"
	}
	d, begins := h.definition(), h.begins()
	h.log = append(h.log, fmt.Sprintf("%d: delete, define %+v, %+v: %s", h.now, d, begins, why))
	if err := h.s.At(h.now).CheckDelete(version); kind(err) != why {
		h.fail("got %v, want %q", err, why)
	}
	if why == "" {
		h.define(d, begins)
	}
}

// define begins a series anew, unless a begin is wrong.
func (h *history) define(d series.Definition, begins []*raftlogv1.SeriesBegin) {
	s, err := series.New(d, begins...)
	wrongBegin := func(b *raftlogv1.SeriesBegin) bool { return b.First > 99 || !(&model{d: d}).allows(b.Scope[1]) }
	if wrong := slices.ContainsFunc(begins, wrongBegin); wrong != (err != nil) {
		h.fail("%+v: %v", begins, err)
	}
	if err == nil {
		at := h.now
		if h.s != nil {
			at = max(h.now, backupOf(h.s.Freeze()).GetTimeUnixNano()+1) // The cluster's time does not go back.
		}
		s.BeginAt(at)
		h.s, h.m = s, &model{d: d, scopes: map[string]*modelScope{}, had: map[string]had{}, now: at}
		h.m.begin(begins)
	}
}

func (h *history) resume() {
	var books []*raftlogv1.SeriesInBooks
	for i, year := range []string{"2026", "2027"} {
		if h.IntN(2) == 0 {
			b := &raftlogv1.SeriesInBooks{Scope: []string{year, h.branch()}, Last: h.one(1, 2, 4, 8, 16, 16, 100), Closed: h.IntN(12) == 0}
			if h.IntN(4) > 0 {
				b.LastDate = proto.Int32(int32(format.DateOf(2026+i, 1, 1)) + int32(h.one(0, 362, 363, 364, 365)))
			}
			books = append(books, b)
		}
	}
	more := h.IntN(4) == 0
	why := h.m.resume(h.now, books, more)
	h.log = append(h.log, fmt.Sprintf("%d: resume %+v, more %t: %s", h.now, books, more, why))
	if err := h.s.Resume(h.now, books, more); kind(err) != why {
		h.fail("got %v, want %q", err, why)
	}
}

func (h *history) reconcile() {
	scope, last := []string{[]string{"2026", "2027"}[h.IntN(2)], h.branch()}, 3
	if c := h.m.scopes[scopeName(scope...)]; c != nil {
		last = max(1, int(c.last()))
	}
	var books []*raftlogv1.SeriesKey
	for _, n := range h.Perm(last)[:h.one(1, 1, min(int64(last), 3))] {
		b := &raftlogv1.SeriesKey{Number: int64(n + 1)}
		if h.IntN(3) > 0 {
			b.Key = h.key()
		}
		if !slices.ContainsFunc(books, func(o *raftlogv1.SeriesKey) bool { return o.Key == b.Key && b.Key != "" }) {
			books = append(books, b)
		}
	}
	reason, want := "", series.ReasonNotInBooks
	if h.IntN(2) == 0 {
		reason, want = "torn", "torn"
	}
	why := h.m.reconcile(h.now, scope, books, want)
	h.log = append(h.log, fmt.Sprintf("%d: reconcile %v %+v: %s", h.now, scope, books, why))
	numbers, err := h.s.Reconcile(h.now, scope, books, reason)
	if kind(err) != why {
		h.fail("got %v, want %q", err, why)
	}
	for i, n := range numbers {
		if n.Number != books[i].Number || n.Key != books[i].Key {
			h.fail("reconciled %+v, got %+v", books[i], n)
		}
	}
}

// compare compares all numbers, and the sums.
func (h *history) compare() {
	if err := h.s.Verify(); err != nil {
		h.fail("%v", err)
	}
	if err := inPieces(h.s, 1+h.IntN(5)); err != nil {
		h.fail("%v", err)
	}
	if now := dump(h.frozen); now != h.then {
		h.fail("a frozen copy changed from %s to %s", h.then, now)
	}
	if h.s.Suspended() != h.m.suspended {
		h.fail("suspended is %t", h.s.Suspended())
	}
	keys, bytes := h.m.keys()
	if gotKeys, gotBytes := h.s.Keys(); gotKeys != keys || gotBytes != bytes {
		h.fail("%d keys of %d bytes, want %d of %d", gotKeys, gotBytes, keys, bytes)
	}
	later := h.now + h.one(0, 6)*tick
	today := format.DateOf(2026, 12, 29) + format.Date(h.IntN(4))
	sums := h.s.At(later).Report(0, 100, today)
	if len(sums) != len(h.m.scopes) {
		h.fail("%d scopes, want %d", len(sums), len(h.m.scopes))
	}
	for _, x := range sums {
		c := h.m.scopes[scopeName(x.Scope...)]
		if x.Scope[1] != c.branch {
			h.fail("%v is spelled as %s", x.Scope, c.branch)
		}
		numbers, next, err := h.s.At(later).Numbers(x.Scope, 0, 0, 1000)
		if paged := h.pages(later, x.Scope, 0); next != 0 ||
			!slices.EqualFunc(paged, numbers, func(a, b *raftlogv1.SeriesNumber) bool { return a.Text == b.Text }) {
			h.fail("%v in pages is %+v, and %+v at once", x.Scope, paged, numbers)
		}
		left, ranges := c.left(today)
		if err != nil || len(numbers) != len(c.all()) || x.Before != c.offset-int64(len(c.before)) ||
			x.Last != c.last() || x.Closed != c.closed ||
			x.LastDate != h.m.lastDate(c, later) || x.Left != left || !slices.Equal(x.Allotments, ranges) {
			h.fail("%+v has %d numbers, %v, want %d", x, len(numbers), err, len(c.all()))
		}
		var counted series.Summary
		for i, n := range numbers {
			e := *c.all()[i]
			overdue := e.state == series.Open && e.expires != 0 && e.expires <= max(later, h.m.now)
			if overdue && h.m.d.OnExpiry == series.ExpiryVoids {
				e.state, e.reason, overdue = series.Voided, series.ReasonExpired, false
			}
			if n.Key != e.key || series.NumberState(n.State) != e.state || n.Reason != e.reason || n.Overdue != overdue || n.Date != int32(e.date) ||
				n.Number != e.number || e.of != nil && n.Note != e.of.note {
				h.fail("number %d of %v is %+v, want %+v", i+1, x.Scope, n, e)
			}
			if text := fmt.Sprintf("%s%s-%02d", x.Scope[1], separator(h.m.d)+x.Scope[0], e.number); n.Text != text {
				h.fail("the text is %s, want %s", n.Text, text)
			}
			text := []string{n.Text, strings.ToLower(n.Text), strings.ToUpper(n.Text)}[h.IntN(3)]
			if found, ok, err := h.s.At(later).Find(text); err != nil || !ok || found.Key != n.Key || found.Number != n.Number {
				h.fail("%s is %+v, %t, %v", n.Text, found, ok, err)
			}
			*map[series.NumberState]*int64{
				series.Open: &counted.Open, series.Confirmed: &counted.Confirmed,
				series.Voided: &counted.Voided, series.Released: &counted.Released, series.Unknown: &counted.Unknown,
			}[series.NumberState(n.GetState())]++
			if n.Overdue {
				counted.Overdue++
			}
		}
		if voided := h.pages(later, x.Scope, series.Voided); int64(len(voided)) != x.Voided {
			h.fail("%v has %d voided numbers, listed %d", x.Scope, x.Voided, len(voided))
		}
		if counted.Open != x.Open || counted.Confirmed != x.Confirmed || counted.Voided != x.Voided || counted.Released != x.Released ||
			counted.Unknown != x.Unknown || counted.Overdue != x.Overdue {
			h.fail("%+v, counted %+v", x, counted)
		}
	}
}

// pages lists the numbers of a scope two at a time.
func (h *history) pages(now int64, scope []string, state series.NumberState) (all []*raftlogv1.SeriesNumber) {
	for above := int64(0); ; {
		page, next, err := h.s.At(now).Numbers(scope, state, above, 2)
		if err != nil || len(page) > 2 {
			h.fail("%+v, %v", page, err)
		}
		if all = append(all, page...); next == 0 {
			return all
		}
		above = next
	}
}

// inPieces verifies a series some numbers at a time.
func inPieces(s *series.Series, limit int) (err error) {
	at, more := series.VerifyCursor{}, true
	for more && err == nil {
		at, more, err = s.VerifySome(at, limit)
	}
	return err
}

// TestAgainstTheModel plays random histories on a series and on its model.
func TestAgainstTheModel(t *testing.T) {
	histories := uint64(300)
	if tier.All() {
		histories = 1000
	}
	for seed := range histories {
		play(t, seed)
		play(t, seed, allotting...)
	}
}

// TestOneHistoryHasOneHash: nothing of it depends on chance, such as the order of a map.
func TestOneHistoryHasOneHash(t *testing.T) {
	for seed := range uint64(30) {
		if a, b := play(t, seed).Hash(), play(t, seed).Hash(); a != b {
			t.Errorf("seed %d: %x and %x", seed, a, b)
		}
	}
}

// play plays one history, which begins with some steps, and returns its series.
func play(t *testing.T, seed uint64, first ...func(*history)) *series.Series {
	t.Helper()
	h := &history{Rand: rand.New(rand.NewPCG(seed, 15)), t: t, seed: seed, now: 1_000}
	d := h.definition()
	h.define(d, nil)
	h.frozen = h.s.Freeze()
	h.then = dump(h.frozen)
	h.log = append(h.log, fmt.Sprintf("%+v", d))
	for range 40 {
		if len(first) > 0 {
			first[0](h)
			first = first[1:]
		}
		h.step()
		if hash := fromScratch(h.s.Freeze()); hash != h.s.Hash() {
			h.fail("the hash is %x, from scratch %x", h.s.Hash(), hash)
		}
		if h.IntN(4) == 0 {
			h.compare()
		}
	}
	h.compare()
	return h.s
}
