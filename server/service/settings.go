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
	setting, ok := s.settingByKey(to.Key)
	if !ok {
		return UpdateSettingResponse{}, invalid(ReasonInvalidSetting, "key", "there is no setting %.64q", to.Key)
	}
	var res UpdateSettingResponse
	err := s.audited(ctx, audit.Record{Event: audit.EventSetting, Name: to.Key, After: to.Value}, func() (done change, err error) {
		res, err = s.setSetting(ctx, setting, to.Value)
		return change{index: res.LogIndex, before: setting.Value, after: to.Value}, err
	})
	return res, err
}

// setSetting changes a setting that there is.
func (s *settings) setSetting(ctx context.Context, setting Setting, newValue int64) (UpdateSettingResponse, error) {
	result, err := s.propose(ctx, op.Envelope{}, &raftlogv1.SettingSet{Key: setting.Key, Value: newValue}, false)
	setting.Value, err = value("UpdateSetting", result, err)
	return UpdateSettingResponse{Setting: setting, LogIndex: result.GetLogIndex()}, err
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

func (s *settings) settingByKey(key string) (Setting, bool) {
	for _, setting := range s.all() {
		if setting.Key == key {
			return setting, true
		}
	}
	return Setting{}, false
}
