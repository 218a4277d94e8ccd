package fsm

import (
	"math"
	"strconv"
	"strings"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// passed reports whether an identity of the name in an id stands at its number or above,
// and whether that identity is known.
func (m *model) passed(db, id string) (passed, known bool) {
	i := strings.LastIndexAny(id, "/#")
	if i <= 0 {
		return false, false
	}
	value, err := strconv.ParseInt(id[i+1:], 10, 64)
	if err != nil || strconv.FormatInt(value, 10) != id[i+1:] {
		return false, false
	}
	if identity := m.ids[place(db, id[:i])]; identity != nil {
		return value <= identity.last, true
	}
	return m.names > 0 && value <= m.names, false
}

// issued reports whether an id may have been issued.
func (m *model) issued(db, id string) bool {
	passed, _ := m.passed(db, id)
	return passed && !m.isFree(db, id)
}

// isFree reports whether an id was released after an identity had stepped over it, above
// the floor.
func (m *model) isFree(db, id string) bool {
	value, _ := strconv.ParseInt(id[strings.LastIndexAny(id, "/#")+1:], 10, 64)
	return m.free[place(db, id)] && (m.names == 0 || value > m.names)
}

// passedElsewhere forgets that an identity stepped over ids.
func (m *model) passedElsewhere(db, name string, from, to int64) {
	for _, marked := range []map[string]bool{m.free, m.steppedOver} {
		for key := range marked {
			id, ok := strings.CutPrefix(key, place(db, name))
			if !ok || id == "" || id[0] != '/' && id[0] != '#' {
				continue
			}
			if value, err := strconv.ParseInt(id[1:], 10, 64); err == nil && value >= from && value <= to {
				delete(marked, key)
			}
		}
	}
}

func (m *model) release(db, id string) *raftlogv1.Result {
	key := place(db, id)
	if !m.claims[key] {
		return m.refused(raftlogv1.RefusalReason_REFUSAL_REASON_CLAIM_NOT_FOUND)
	}
	if m.steppedOver[key] {
		m.free[key] = true
	}
	delete(m.claims, key)
	delete(m.steppedOver, key)
	return m.nothing()
}

// addClaim adds a claim; one of an id that is free was stepped over before.
func (m *model) addClaim(key string) {
	m.claims[key] = true
	m.steppedOver[key] = m.free[key]
	delete(m.free, key)
}

// merge has no limits.
func (m *model) merge(db string, o *raftlogv1.Merge) *raftlogv1.Result {
	result := &raftlogv1.MergeResult{}
	for _, id := range o.GetClaims() {
		key := place(db, id)
		if m.claims[key] {
			result.Unchanged++
			continue
		}
		if passed, known := m.passed(db, id); passed && known && !m.isFree(db, id) {
			result.Conflicts = append(result.Conflicts, id)
		}
		result.Claimed++
		m.addClaim(key)
	}
	for _, i := range o.GetIdentities() {
		m.passedElsewhere(db, i.GetName(), math.MinInt64, i.GetLast())
		old, known := m.ids[place(db, i.GetName())]
		now := modelIdentity{last: max(m.names, i.GetLast()), hidden: i.GetHidden()}
		if known {
			now = modelIdentity{last: max(old.last, i.GetLast()), hidden: old.hidden && i.GetHidden()}
		}
		count(result, known, known && now != *old)
		m.ids[place(db, i.GetName())] = &now
	}
	for _, h := range o.GetHilos() {
		old, known := m.hilos[place(db, h.GetTag())]
		if !known {
			old = &modelHiLo{max: m.names, peak: m.names}
		}
		now := raised(old, h.GetMax(), h.GetPeak())
		count(result, known, now.max != old.max || now.peak != old.peak)
		m.hilos[place(db, h.GetTag())] = now
	}
	return &raftlogv1.Result{LogIndex: m.index, Result: &raftlogv1.Result_Merge{Merge: result}}
}

func count(result *raftlogv1.MergeResult, known, changed bool) {
	switch {
	case !known:
		result.Created++
	case changed:
		result.Raised++
	default:
		result.Unchanged++
	}
}

// raised returns a counter raised to a Max and a Peak, with the ranges that can
// still come back.
func raised(h *modelHiLo, highest, peak int64) *modelHiLo {
	now := &modelHiLo{max: max(h.max, highest)}
	now.peak = max(h.peak, peak, now.max)
	for _, o := range h.outstanding {
		if o.low > highest {
			now.outstanding = append(now.outstanding, o)
		}
	}
	return now
}

func (m *model) raiseFloor(to int64) *raftlogv1.Result {
	m.names = max(m.names, to)
	if to > 0 {
		for _, id := range m.ids {
			id.last = max(id.last, to)
		}
		for key, h := range m.hilos {
			m.hilos[key] = raised(h, to, 0)
		}
	}
	return &raftlogv1.Result{LogIndex: m.index, Result: &raftlogv1.Result_MergeCluster{
		MergeCluster: &raftlogv1.MergeClusterResult{Floor: m.names},
	}}
}
