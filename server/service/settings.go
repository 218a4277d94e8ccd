package service

import (
	"cmp"
	"context"
	"slices"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Setting is one replicated setting.
type Setting struct {
	Key            string
	Value, Default int64
	// Description says what it limits.
	Description string
}

// ListSettingsResponse holds all settings by key.
type ListSettingsResponse struct {
	Settings []Setting
	LogIndex uint64
}

// ListSettings shows the replicated settings.
func (s *Service) ListSettings(ctx context.Context, consistency Consistency) (ListSettingsResponse, error) {
	caller, err := s.enter(ctx)
	if err != nil {
		return ListSettingsResponse{}, err
	}
	defer s.leave(caller)
	index, err := s.settle(ctx, consistency)
	if err != nil {
		return ListSettingsResponse{}, s.finish(ctx, "ListSettings", err)
	}
	return ListSettingsResponse{Settings: s.settings(), LogIndex: index}, nil
}

// UpdateSettingResponse holds the setting as it is now.
type UpdateSettingResponse struct {
	Setting  Setting
	LogIndex uint64
}

// UpdateSetting changes one replicated setting. Which values it may have is for
// the replicated state to say.
func (s *Service) UpdateSetting(ctx context.Context, key string, newValue int64) (UpdateSettingResponse, error) {
	caller, err := s.enter(ctx)
	if err != nil {
		return UpdateSettingResponse{}, err
	}
	defer s.leave(caller)
	res, err := s.updateSetting(ctx, key, newValue)
	return res, s.finish(ctx, "UpdateSetting", err)
}

func (s *Service) updateSetting(ctx context.Context, key string, newValue int64) (UpdateSettingResponse, error) {
	if err := s.authorize(ctx, rights.Cluster, "", ""); err != nil {
		return UpdateSettingResponse{}, err
	}
	setting, ok := s.settingByKey(key)
	if !ok {
		return UpdateSettingResponse{}, invalid(ReasonInvalidSetting, "key", "there is no setting %.64q", key)
	}
	var res UpdateSettingResponse
	err := s.audited(ctx, audit.Record{Event: audit.EventSetting, Name: key, After: newValue}, func() (done change, err error) {
		res, err = s.setSetting(ctx, setting, newValue)
		return change{index: res.LogIndex, before: setting.Value, after: newValue}, err
	})
	return res, err
}

// setSetting changes a setting that there is.
func (s *Service) setSetting(ctx context.Context, setting Setting, newValue int64) (UpdateSettingResponse, error) {
	result, err := s.propose(ctx, &raftlogv1.Operation{
		Op: &raftlogv1.Operation_SettingSet{SettingSet: &raftlogv1.SettingSet{Key: setting.Key, Value: newValue}},
	}, false)
	if err != nil {
		return UpdateSettingResponse{}, err
	}
	setting.Value, err = value("UpdateSetting", result)
	return UpdateSettingResponse{Setting: setting, LogIndex: result.GetLogIndex()}, err
}

// settings returns all settings by key.
func (s *Service) settings() []Setting {
	var settings []Setting
	for _, f := range s.cfg.State.Settings() {
		settings = append(settings, Setting{Key: f.Key, Value: f.Value, Default: f.Default, Description: f.Description})
	}
	slices.SortFunc(settings, func(a, b Setting) int { return cmp.Compare(a.Key, b.Key) })
	return settings
}

func (s *Service) settingByKey(key string) (Setting, bool) {
	for _, setting := range s.settings() {
		if setting.Key == key {
			return setting, true
		}
	}
	return Setting{}, false
}
