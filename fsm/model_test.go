package fsm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// model is the state as one would write it without a thought of speed or memory:
// plain maps and lists, rules written out. It shares nothing with the real one
// but the messages.
type model struct {
	index  uint64
	now    int64
	formed bool
	ids    map[string]*modelIdentity
	hilos  map[string]*modelHiLo
	claims map[string]bool
	// steppedOver are claims that an identity stepped over; free were released after
	// that.
	steppedOver, free map[string]bool
	// names is the floor of names that are not known.
	names    int64
	settings map[string]int64
	// requests are in the order of the log.
	requests []modelRequest
	// floors have the newest log index of a principal's forgotten requests, while some of its
	// requests are remembered; floor has that of all others.
	floors   map[string]uint64
	floor    uint64
	members  []*raftlogv1.Member
	sessions map[string]*modelSession
	etags    map[string]*modelEtags
}

type modelIdentity struct {
	last   int64
	hidden bool
}

type modelHiLo struct {
	max, peak   int64
	outstanding []modelRange
}

type modelRange struct {
	low, high int64
	token     uint64
	// holder is nil if it is not known.
	holder *raftlogv1.RangeHolder
}

type modelRequest struct {
	principal   string
	key         string
	fingerprint uint64
	index       uint64
	result      *raftlogv1.Result
}

type modelSession struct {
	number, acknowledged uint64
	results              map[uint64][]*raftlogv1.Result
}

type modelEtags struct {
	start         uint64
	clean         bool
	ceiling, last map[string]uint64
}

func newModel() *model {
	return &model{
		ids: map[string]*modelIdentity{}, hilos: map[string]*modelHiLo{}, claims: map[string]bool{},
		steppedOver: map[string]bool{}, free: map[string]bool{},
		settings: map[string]int64{
			"request-window": 1_000_000, "max-identities": 5_000_000, "max-hilos": 5_000_000,
			"max-claims": 5_000_000, "max-databases": 10_000, "max-name-bytes-total": 1 << 30,
			"max-names-per-database": 300_000_000, "max-name-bytes-per-database": 1 << 40,
		},
		floors: map[string]uint64{}, sessions: map[string]*modelSession{}, etags: map[string]*modelEtags{},
	}
}

// place is a map's key for a name in a database.
func place(db, name string) string { return db + "\x00" + name }

// modelGroup is a group before it is encoded.
type modelGroup struct {
	origin                          []byte
	session, sequence, acknowledged uint64
	operations                      []*raftlogv1.Operation
}

// applyGroup returns the group's status and results.
func (m *model) applyGroup(g modelGroup) (raftlog.Status, []*raftlogv1.Result) {
	if len(g.origin) == 0 {
		return raftlog.Applied, m.applyAll(g.operations)
	}
	s := m.sessions[string(g.origin)]
	if s == nil || s.number != g.session {
		return raftlog.StaleSession, nil
	}
	acknowledged := max(s.acknowledged, g.acknowledged)
	if g.sequence <= acknowledged || g.sequence > acknowledged+64 {
		return raftlog.StaleSequence, nil
	}
	results, again := s.results[g.sequence]
	if !again {
		results = m.applyAll(g.operations)
		s.results[g.sequence] = results
	}
	s.acknowledged = acknowledged
	for sequence := range s.results {
		if sequence <= acknowledged {
			delete(s.results, sequence)
		}
	}
	return raftlog.Applied, results
}

func (m *model) applyAll(ops []*raftlogv1.Operation) []*raftlogv1.Result {
	var results []*raftlogv1.Result
	for _, op := range ops {
		results = append(results, m.apply(op))
	}
	return results
}

// apply applies one operation.
func (m *model) apply(op *raftlogv1.Operation) *raftlogv1.Result {
	if !m.formed && op.GetBootstrap() == nil {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_NOT_FORMED)
	}
	k := op.GetRequest()
	if k == nil {
		return m.run(op)
	}
	principal := op.GetPrincipal()
	key := string(k.GetKey()) + "of " + principal
	for _, r := range m.requests {
		if r.key != key {
			continue
		}
		if r.fingerprint != k.GetFingerprint() {
			return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_REQUEST_ID_REUSED)
		}
		return r.result
	}
	if k.GetSince() >= m.index || k.GetSince() < m.floorOf(principal) && (k.GetRetry() || k.GetSince() > 0) {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_REQUEST_ID_EXPIRED)
	}
	result := m.run(op)
	if result.GetRefusal() == nil {
		m.evict(m.settings["request-window"] - 1)
		m.floors[principal] = m.floorOf(principal)
		m.requests = append(m.requests, modelRequest{principal, key, k.GetFingerprint(), m.index, result})
	}
	return result
}

func (m *model) floorOf(principal string) uint64 {
	if floor, known := m.floors[principal]; known {
		return floor
	}
	return m.floor
}

func (m *model) evict(limit int64) {
	for int64(len(m.requests)) > limit {
		most := map[string]int{}
		for _, r := range m.requests {
			most[r.principal]++
		}
		inOrder := slices.Clone(m.requests)
		slices.SortStableFunc(inOrder, func(a, b modelRequest) int {
			return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.principal, b.principal))
		})
		gone := inOrder[0]
		if m.index-gone.index <= requestShelter {
			gone = slices.MinFunc(inOrder, func(a, b modelRequest) int { return most[b.principal] - most[a.principal] })
		}
		m.forget(gone, most[gone.principal] == 1)
	}
}

// forget forgets a request, which may be the last one of its principal.
func (m *model) forget(gone modelRequest, last bool) {
	m.requests = slices.DeleteFunc(m.requests, func(r modelRequest) bool { return r.key == gone.key })
	m.floors[gone.principal] = gone.index
	if last {
		m.floor = max(m.floor, gone.index)
		delete(m.floors, gone.principal)
	}
}

func (m *model) refused(reason raftlogv1.RefusalReason) *raftlogv1.Result {
	return &raftlogv1.Result{LogIndex: m.index, Refusal: &raftlogv1.Refusal{Reason: reason}}
}

func (m *model) value(v int64) *raftlogv1.Result {
	return &raftlogv1.Result{LogIndex: m.index, Result: &raftlogv1.Result_Value{Value: v}}
}

func (m *model) member(r *raftlogv1.MemberResult) *raftlogv1.Result {
	return proto.CloneOf(&raftlogv1.Result{LogIndex: m.index, Result: &raftlogv1.Result_Member{Member: r}})
}

func (m *model) nothing() *raftlogv1.Result { return &raftlogv1.Result{LogIndex: m.index} }

func (m *model) run(op *raftlogv1.Operation) *raftlogv1.Result {
	db := op.GetDatabase()
	switch o := op.GetOp().(type) {
	case *raftlogv1.Operation_IdentityNext:
		return m.next(db, o.IdentityNext)
	case *raftlogv1.Operation_IdentitySeed:
		return m.seed(db, o.IdentitySeed)
	case *raftlogv1.Operation_IdentityDelete:
		return m.delete(db, o.IdentityDelete)
	case *raftlogv1.Operation_HiloNext:
		return m.hiloNext(db, op.GetPrincipal(), o.HiloNext)
	case *raftlogv1.Operation_HiloReturn:
		return m.hiloReturn(db, op.GetPrincipal(), o.HiloReturn)
	case *raftlogv1.Operation_HiloSet:
		return m.hiloSet(db, o.HiloSet)
	case *raftlogv1.Operation_Claim:
		return m.claim(db, o.Claim.GetId())
	case *raftlogv1.Operation_Release:
		return m.release(db, o.Release.GetId())
	case *raftlogv1.Operation_DatabaseDelete:
		return m.deleteDatabase(db)
	case *raftlogv1.Operation_Merge:
		return m.merge(db, o.Merge)
	case *raftlogv1.Operation_MergeCluster:
		return m.raiseFloor(o.MergeCluster.GetFloor())
	case *raftlogv1.Operation_SettingSet:
		m.settings[o.SettingSet.GetKey()] = o.SettingSet.GetValue()
		m.evict(m.settings["request-window"])
		return m.value(o.SettingSet.GetValue())
	}
	return m.runCluster(op)
}

// unfit refuses a new name that has a control character, or no longer fits.
func (m *model) unfit(setting string, used int, db, name string) *raftlogv1.Result {
	if strings.ContainsAny(name, "\n\u202e") {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_INVALID)
	}
	bytes, ownNames, ownBytes := len(name), 1, len(name)
	for _, names := range [][]string{mapKeys(m.ids), mapKeys(m.hilos), mapKeys(m.claims)} {
		for _, k := range names {
			of, name, _ := strings.Cut(k, "\x00")
			bytes += len(name)
			if of == db {
				ownNames, ownBytes = ownNames+1, ownBytes+len(name)
			}
		}
	}
	dbs := m.databases()
	newDB := !slices.Contains(dbs, db)
	if int64(used) >= m.settings[setting] || int64(bytes) > m.settings["max-name-bytes-total"] ||
		int64(ownNames) > m.settings["max-names-per-database"] || int64(ownBytes) > m.settings["max-name-bytes-per-database"] ||
		newDB && int64(len(dbs)) >= m.settings["max-databases"] {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_QUOTA)
	}
	return nil
}

func mapKeys[V any](in map[string]V) []string {
	keys := make([]string, 0, len(in))
	for k := range in {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// databases are those that have names, or released ids.
func (m *model) databases() (all []string) {
	for _, names := range [][]string{mapKeys(m.ids), mapKeys(m.hilos), mapKeys(m.claims), mapKeys(m.free)} {
		for _, k := range names {
			db, _, _ := strings.Cut(k, "\x00")
			all = append(all, db)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (m *model) deleteDatabase(db string) *raftlogv1.Result {
	of := func(key string) bool { return strings.HasPrefix(key, place(db, "")) }
	names := 0
	count := func(key string) bool {
		if of(key) {
			names++
		}
		return of(key)
	}
	maps.DeleteFunc(m.ids, func(key string, _ *modelIdentity) bool { return count(key) })
	maps.DeleteFunc(m.hilos, func(key string, _ *modelHiLo) bool { return count(key) })
	for _, marks := range []map[string]bool{m.claims, m.free} {
		maps.DeleteFunc(marks, func(key string, _ bool) bool { return count(key) })
	}
	maps.DeleteFunc(m.steppedOver, func(key string, _ bool) bool { return of(key) })
	return &raftlogv1.Result{LogIndex: m.index, Result: &raftlogv1.Result_DatabaseDeleted{
		DatabaseDeleted: &raftlogv1.DatabaseDeleted{Names: int64(names)},
	}}
}

func (m *model) next(db string, o *raftlogv1.IdentityNext) *raftlogv1.Result {
	if o.GetCount() < 1 || o.GetName() == "" {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_INVALID)
	}
	id := m.ids[place(db, o.GetName())]
	if id == nil {
		if r := m.unfit("max-identities", len(m.ids), db, o.GetName()); r != nil {
			return r
		}
		id = &modelIdentity{last: m.names}
	}
	var values []*raftlogv1.Values
	var stepped []string
	value := id.last
	for taken := int64(0); taken < o.GetCount(); {
		if value++; value < 0 && id.last > 0 {
			return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_COUNTER_EXHAUSTED)
		}
		key := place(db, o.GetName()+o.GetSeparator()+strconv.FormatInt(value, 10))
		if m.claims[key] || m.free[key] {
			stepped = append(stepped, key)
			continue
		}
		taken++
		if n := len(values); n > 0 && values[n-1].Last == value-1 {
			values[n-1].Last = value
		} else {
			values = append(values, &raftlogv1.Values{First: value, Last: value})
		}
	}
	m.ids[place(db, o.GetName())] = &modelIdentity{last: value}
	for _, key := range stepped {
		m.steppedOver[key] = m.claims[key]
	}
	return &raftlogv1.Result{LogIndex: m.index, Result: &raftlogv1.Result_IdentityNext{
		IdentityNext: &raftlogv1.IdentityNextResult{Values: values},
	}}
}

func (m *model) seed(db string, o *raftlogv1.IdentitySeed) *raftlogv1.Result {
	id := m.ids[place(db, o.GetName())]
	if id == nil {
		if r := m.unfit("max-identities", len(m.ids), db, o.GetName()); r != nil {
			return r
		}
		id = &modelIdentity{last: m.names}
	}
	if o.Expected != nil && o.GetExpected() != id.last {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY)
	}
	value := o.GetValue()
	if !o.GetForce() && value < id.last {
		value = id.last
	}
	if value > id.last {
		m.passedElsewhere(db, o.GetName(), id.last+1, value)
	}
	result := m.value(value)
	if _, known := m.ids[place(db, o.GetName())]; known {
		result.Before = proto.Int64(id.last)
	}
	m.ids[place(db, o.GetName())] = &modelIdentity{last: value}
	return result
}

func (m *model) delete(db string, o *raftlogv1.IdentityDelete) *raftlogv1.Result {
	id := m.ids[place(db, o.GetName())]
	if id == nil || id.hidden && !o.GetForget() {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_IDENTITY_NOT_FOUND)
	}
	stood := id.last
	id.hidden = true
	id.last = max(id.last, m.names)
	if o.GetForget() {
		delete(m.ids, place(db, o.GetName()))
	}
	return m.value(stood)
}

// modelSize is the table of sizes, row by row.
func modelSize(o *raftlogv1.HiLoNext, now int64) int64 {
	if o.GetSize() > 0 {
		return o.GetSize()
	}
	n := min(max(o.GetLastSize(), 0), 1<<20)
	seconds := float64(now-o.GetLastRangeUnixNano()) / 1e9
	switch {
	case !o.GetHasLastRange():
	case seconds < 30:
		n *= 2
	case seconds > 60:
		n /= 2
	}
	return min(max(n, 32), 1<<20)
}

func (m *model) hiloNext(db, principal string, o *raftlogv1.HiLoNext) *raftlogv1.Result {
	if o.GetSize() < 0 || o.GetSize() > 1<<20 || len(o.GetLabel()) > 64 || strings.Contains(o.GetLabel(), "\n") {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_INVALID)
	}
	h := m.hilos[place(db, o.GetTag())]
	if h == nil {
		if r := m.unfit("max-hilos", len(m.hilos), db, o.GetTag()); r != nil {
			return r
		}
		h = &modelHiLo{max: m.names, peak: m.names}
	}
	if o.GetLastMax() > h.max+1<<32 {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_LAST_MAX_INVALID)
	}
	size := modelSize(o, m.now)
	base := max(h.max, o.GetLastMax())
	issued := modelRange{base + 1, max(base+size, h.peak+1), o.GetToken(), m.holder(principal, o)}
	var before *int64
	if base != h.max {
		h.outstanding, before = nil, proto.Int64(h.max)
	}
	h.outstanding = append(h.outstanding, issued)
	if len(h.outstanding) > 4 {
		h.outstanding = h.outstanding[1:]
	}
	h.max, h.peak = issued.high, issued.high
	m.hilos[place(db, o.GetTag())] = h
	return &raftlogv1.Result{LogIndex: m.index, Before: before, Result: &raftlogv1.Result_HiloNext{HiloNext: &raftlogv1.HiLoNextResult{
		Low: issued.low, High: issued.high, Size: size, TimeUnixNano: m.now, Token: o.GetToken(),
		ServerTag: o.GetServerTag(), ServerPrefix: o.GetServerPrefix(),
	}}}
}

// holder returns the record of a range's holder.
func (m *model) holder(principal string, o *raftlogv1.HiLoNext) *raftlogv1.RangeHolder {
	h := &raftlogv1.RangeHolder{Principal: principal, Node: o.GetServerTag(), Reserve: o.GetReserve(), IssuedUnix: m.now / 1e9}
	if !h.Reserve {
		h.Label = o.GetLabel()
	}
	return h
}

func (m *model) hiloReturn(db, principal string, o *raftlogv1.HiLoReturn) *raftlogv1.Result {
	answer := &raftlogv1.HiLoReturnResult{Max: m.names}
	if h := m.hilos[place(db, o.GetTag())]; h != nil {
		answer.Returned = h.giveBack(principal, o)
		answer.Max = h.max
	}
	return &raftlogv1.Result{LogIndex: m.index, Result: &raftlogv1.Result_HiloReturn{HiloReturn: answer}}
}

func (h *modelHiLo) giveBack(principal string, o *raftlogv1.HiLoReturn) bool {
	n := len(h.outstanding)
	if n == 0 {
		return false
	}
	r := h.outstanding[n-1]
	if o.GetHigh() != r.high || h.max != r.high || o.GetLast() < r.low-1 || o.GetLast() > r.high {
		return false
	}
	if o.GetCheckToken() && (o.GetToken() != r.token || o.GetLow() != r.low) {
		return false
	}
	if !o.GetCheckToken() && (o.GetLow() != 0 && o.GetLow() != r.low || r.holder.Reserve || r.holder.Principal != principal) {
		return false
	}
	h.max = o.GetLast()
	h.outstanding = h.outstanding[:n-1]
	if o.GetLast() >= r.low {
		h.outstanding = nil
	}
	return true
}

func (m *model) hiloSet(db string, o *raftlogv1.HiLoSet) *raftlogv1.Result {
	h := m.hilos[place(db, o.GetTag())]
	if h == nil {
		if r := m.unfit("max-hilos", len(m.hilos), db, o.GetTag()); r != nil {
			return r
		}
		h = &modelHiLo{max: m.names, peak: m.names}
	}
	if o.GetExpected() != h.max || o.GetMax() < h.max {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY)
	}
	if o.GetMax() > h.max {
		*h = modelHiLo{max: o.GetMax(), peak: max(h.peak, o.GetMax())}
	}
	h.outstanding = nil
	m.hilos[place(db, o.GetTag())] = h
	return m.value(h.max)
}

func (m *model) claim(db, id string) *raftlogv1.Result {
	if m.claims[place(db, id)] {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_ID_CLAIMED)
	}
	if m.issued(db, id) {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_ID_CLAIMED)
	}
	if r := m.unfit("max-claims", len(m.claims), db, id); r != nil {
		return r
	}
	m.addClaim(place(db, id))
	return m.nothing()
}

// String shows the model in a failure.
func (m *model) String() string {
	return fmt.Sprintf("index %d, ids %v, hilos %v, claims %v, requests %d, floor %d",
		m.index, m.ids, m.hilos, m.claims, len(m.requests), m.floor)
}
