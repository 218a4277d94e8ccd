package service

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

type settings struct {
	*base
}

// ListSettings shows all replicated settings, by key.
func (s *settings) ListSettings(ctx context.Context, req *idnodev1.ListSettingsRequest) (*idnodev1.ListSettingsResponse, error) {
	return admission.Call(ctx, s.Control, "ListSettings", req, s.listSettings)
}

func (s *settings) listSettings(ctx context.Context, req *idnodev1.ListSettingsRequest) (*idnodev1.ListSettingsResponse, error) {
	index, err := s.settle(ctx, req.GetConsistency())
	return &idnodev1.ListSettingsResponse{Settings: s.all(), LogIndex: index}, err
}

// UpdateSetting changes one replicated setting. The replicated state checks its values.
func (s *settings) UpdateSetting(ctx context.Context, req *idnodev1.UpdateSettingRequest) (*idnodev1.UpdateSettingResponse, error) {
	return admission.Call(ctx, s.Control, "UpdateSetting", req, s.updateSetting)
}

func (s *settings) updateSetting(ctx context.Context, to *idnodev1.UpdateSettingRequest) (*idnodev1.UpdateSettingResponse, error) {
	if err := s.Authorize(ctx, rights.Cluster, "", ""); err != nil {
		return nil, err
	}
	all := s.all()
	at := slices.IndexFunc(all, func(known *idnodev1.Setting) bool { return known.GetKey() == to.GetKey() })
	if at < 0 {
		var keys []string
		for _, known := range all {
			keys = append(keys, known.GetKey())
		}
		return nil, apierror.Invalid(apierror.ReasonInvalidSetting, "key", "there is no setting %.64q, only %s", to.GetKey(),
			strings.Join(keys, ", "))
	}
	if to.Value == nil {
		return nil, apierror.Invalid(apierror.ReasonInvalidSetting, "value", "the value of %s is missing", to.GetKey())
	}
	record := audit.Record{Event: audit.EventSetting, Name: to.GetKey(), After: to.GetValue()}
	set := &raftlogv1.SettingSet{Key: to.GetKey(), Value: to.GetValue()}
	now, err := s.proposeAudited(ctx, record, op.Envelope{}, set, false, func(*raftlogv1.Result) (before, after any) {
		return all[at].GetValue(), to.GetValue()
	})
	setting := all[at]
	setting.Value = now.GetValue()
	return &idnodev1.UpdateSettingResponse{Setting: setting, LogIndex: now.GetLogIndex()}, err
}

func (s *settings) all() []*idnodev1.Setting {
	var all []*idnodev1.Setting
	for _, f := range s.state.Settings() {
		all = append(all, &idnodev1.Setting{
			Key: f.Key, Value: f.Value, DefaultValue: f.Default, Description: f.Description, Lowered: f.Lowered,
		})
	}
	slices.SortFunc(all, func(a, b *idnodev1.Setting) int { return cmp.Compare(a.GetKey(), b.GetKey()) })
	return all
}
