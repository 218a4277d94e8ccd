package fsm

import (
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// SettingInfo describes a replicated setting.
type SettingInfo struct {
	// Key names it in commands.
	Key string
	// Default is its value until it is set.
	Default int64
	// Min and Max are the smallest and largest value it may have.
	Min, Max int64
	// Description is the setting's effect, and its unit.
	Description string
	// Lowered is the effect of a lower value: losses and refusals. Commands ask before they set a
	// lower value.
	Lowered string
}

// settingID is a setting's place in settingTable. Snapshots and backups have the settings in this order.
type settingID int

const (
	settingRequestWindow settingID = iota
	settingMaxIdentities
	settingMaxHiLos
	settingMaxClaims
	settingMaxDatabases
	settingMaxNameBytes
	settingMaxDatabaseNames
	settingMaxDatabaseNameBytes
	settingCount
)

// settingTable holds all settings. The state holds only settings that differ from their
// defaults, so changing a default or a range is a new log format.
var settingTable = [settingCount]SettingInfo{
	settingRequestWindow: {
		Key: "request-window", Default: 1_000_000, Min: 1, Max: 20_000_000,
		Description: "the greatest number of remembered request ids",
		Lowered:     "the oldest request ids beyond it are forgotten, and their retries are refused with REQUEST_ID_EXPIRED",
	},
	settingMaxIdentities: {
		Key: "max-identities", Default: 5_000_000, Min: 0, Max: 100_000_000,
		Description: "the greatest number of identities in all databases, including deleted but not forgotten identities",
		Lowered:     "new identities are refused while there are as many",
	},
	settingMaxHiLos: {
		Key: "max-hilos", Default: 5_000_000, Min: 0, Max: 100_000_000,
		Description: "the greatest number of HiLo counters in all databases",
		Lowered:     "new HiLo counters are refused while there are as many",
	},
	settingMaxClaims: {
		Key: "max-claims", Default: 5_000_000, Min: 0, Max: 100_000_000,
		Description: "the greatest number of claims in all databases",
		Lowered:     "claims are refused while there are as many",
	},
	settingMaxDatabases: {
		Key: "max-databases", Default: 10_000, Min: 1, Max: 1_000_000,
		Description: "the greatest number of databases, and of databases for which each node keeps etags",
		Lowered:     "new databases are refused while there are as many",
	},
	settingMaxNameBytes: {
		Key: "max-name-bytes-total", Default: 1 << 30, Min: 0, Max: 1 << 40,
		Description: "the greatest size in bytes of the names of all identities, HiLo counters, claims, series, pools and their parts",
		Lowered:     "new names are refused while all names have as many bytes",
	},
	settingMaxDatabaseNames: {
		Key: "max-names-per-database", Default: 300_000_000, Min: 0, Max: 300_000_000,
		Description: "the greatest number of identities, HiLo counters, claims, series, pools and their parts in one database",
		Lowered:     "new names are refused in a database that has as many",
	},
	settingMaxDatabaseNameBytes: {
		Key: "max-name-bytes-per-database", Default: 1 << 40, Min: 0, Max: 1 << 40,
		Description: "the greatest size in bytes of the names of one database",
		Lowered:     "new names are refused in a database whose names have as many bytes",
	},
}

type settingStore struct{ values [settingCount]int64 }

func newSettings() settingStore {
	var s settingStore
	for id, info := range settingTable {
		s.values[id] = info.Default
	}
	return s
}

func (s *settingStore) value(id settingID) int64 { return s.values[id] }

func (s *settingStore) requestWindow() uint64 { return uint64(s.value(settingRequestWindow)) }

func (s *settingStore) changed(id settingID) bool { return s.values[id] != settingTable[id].Default }

func settingByKey(key string) (settingID, bool) {
	for id, info := range settingTable {
		if info.Key == key {
			return settingID(id), true
		}
	}
	return 0, false
}

// settingSet changes a setting. A limit below the present use stops growth and removes nothing; only
// the window of request ids shrinks, by some with each entry from this one on.
func (c *contents) settingSet(dst []byte, now moment, _ op.Operation, set *raftlogv1.SettingSet) ([]byte, *refusal) {
	id, ok := settingByKey(set.GetKey())
	if !ok {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SETTING_INVALID, "key", "there is no setting %.200q", set.GetKey())
	}
	if err := checkSetting(id, set.GetValue()); err != nil {
		return dst, err
	}
	c.settings.values[id] = set.GetValue()
	c.requests.evict(c.settings.requestWindow(), now.index, requestsAtOnce)
	return op.AppendValue(dst, set.GetValue()), nil
}

func checkSetting(id settingID, value int64) *refusal {
	info := settingTable[id]
	if value >= info.Min && value <= info.Max {
		return nil
	}
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SETTING_INVALID, "value",
		"%s is %d, must be from %d to %d", info.Key, value, info.Min, info.Max)
}

func (s *settingStore) quota(limit settingID) *refusal {
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_QUOTA, "",
		"the limit %s of %d is reached", settingTable[limit].Key, s.value(limit))
}

// LimitsUsed returns the used share of each limit, by its key; of a limit for each database, the share of
// the database that uses most.
func (s *State) LimitsUsed() map[string]float64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	d := &s.contents.databases
	used := d.kinds
	used[settingMaxNameBytes], used[settingMaxDatabases] = d.nameBytes, d.counting()
	for _, one := range d.used {
		used[settingMaxDatabaseNames] = max(used[settingMaxDatabaseNames], one.names)
		used[settingMaxDatabaseNameBytes] = max(used[settingMaxDatabaseNameBytes], one.bytes)
	}
	shares := map[string]float64{}
	for id, info := range settingTable {
		if settingID(id) != settingRequestWindow {
			shares[info.Key] = float64(used[id]) / float64(max(1, d.limits.values[id]))
		}
	}
	return shares
}

func (s *settingStore) records() records {
	var changed []*raftlogv1.SnapshotRecord
	for id := range settingCount {
		if s.changed(id) {
			setting := &raftlogv1.SettingRecord{Key: settingTable[id].Key, Value: s.value(id)}
			changed = append(changed, &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Setting{Setting: setting}})
		}
	}
	return these(changed...)
}

func (s *settingStore) restore(m *raftlogv1.SettingRecord) error {
	id, ok := settingByKey(m.GetKey())
	if !ok || checkSetting(id, m.GetValue()) != nil || s.changed(id) {
		return corrupt("setting %q of %d", m.GetKey(), m.GetValue())
	}
	s.values[id] = m.GetValue()
	return nil
}

func (s *settingStore) hash() (h statehash.Sum) {
	for id := range settingCount {
		if s.changed(id) {
			h.Add(hashSetting(id, s.value(id)))
		}
	}
	return h
}
