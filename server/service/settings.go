package service

import (
	"cmp"
	"context"
	"slices"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Setting is one replicated setting.
type Setting struct {
	Key            string
	Value, Default int64
	// Description says what it limits.
	Description string
}

// settings are the use cases of the replicated settings.
type settings struct {
	*calls
	*proposer
	*reader
}

// ListSettings shows all replicated settings, by key.
func (s *settings) ListSettings(ctx context.Context, consistency Consistency) (Page[Setting], error) {
	return call(ctx, s.calls, "ListSettings", consistency, s.listSettings)
}

func (s *settings) listSettings(ctx context.Context, consistency Consistency) (Page[Setting], error) {
	index, err := s.settle(ctx, consistency)
	if err != nil {
		return Page[Setting]{}, err
	}
	return Page[Setting]{Items: s.all(), LogIndex: index}, nil
}

// UpdateSettingResponse holds the setting as it is now.
type UpdateSettingResponse struct {
	Setting  Setting
	LogIndex uint64
}

// UpdateSetting changes one replicated setting. Which values it may have is for
// the replicated state to say.
func (s *settings) UpdateSetting(ctx context.Context, key string, newValue int64) (UpdateSettingResponse, error) {
	return call(ctx, s.calls, "UpdateSetting", Setting{Key: key, Value: newValue}, s.updateSetting)
}

func (s *settings) updateSetting(ctx context.Context, to Setting) (UpdateSettingResponse, error) {
	if err := s.authorize(ctx, rights.Cluster, "", ""); err != nil {
		return UpdateSettingResponse{}, err
	}
	all := s.all()
	at := slices.IndexFunc(all, func(known Setting) bool { return known.Key == to.Key })
	if at < 0 {
		return UpdateSettingResponse{}, invalid(ReasonInvalidSetting, "key", "there is no setting %.64q", to.Key)
	}
	res := UpdateSettingResponse{Setting: all[at]}
	err := s.audited(ctx, audit.Record{Event: audit.EventSetting, Name: to.Key, After: to.Value}, func() (change, error) {
		result, err := s.propose(ctx, op.Envelope{}, &raftlogv1.SettingSet{Key: to.Key, Value: to.Value}, false)
		now, err := value("UpdateSetting", result, err)
		res.Setting.Value, res.LogIndex = now.Value, now.LogIndex
		return change{index: now.LogIndex, before: all[at].Value, after: to.Value}, err
	})
	return res, err
}

// all returns all settings by key.
func (s *settings) all() []Setting {
	var all []Setting
	for _, f := range s.state.Settings() {
		all = append(all, Setting{Key: f.Key, Value: f.Value, Default: f.Default, Description: f.Description})
	}
	slices.SortFunc(all, func(a, b Setting) int { return cmp.Compare(a.Key, b.Key) })
	return all
}
