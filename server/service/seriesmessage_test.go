package service

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// TestDefinitionsThereAndBack: each choice of the API is one of package series, its 0 is the
// default, and one that is unknown stays so.
func TestDefinitionsThereAndBack(t *testing.T) {
	for reset := range idnodev1.SeriesReset_name {
		for order := range idnodev1.SeriesOrder_name {
			m := &idnodev1.SeriesDefinition{
				Format: "{number}", ResetBy: idnodev1.SeriesReset(reset), Order: idnodev1.SeriesOrder(order),
				OnRelease: idnodev1.SeriesOnRelease(min(order, 2)), OnExpiry: idnodev1.SeriesOnExpiry(order),
				ExpiresIn: durationpb.New(time.Hour), MaxOpen: 3, MaxKeys: 4, TimeZone: "Europe/Berlin", MaxAheadDays: 30,
			}
			want := proto.CloneOf(m)
			want.ResetBy, want.Order = max(want.GetResetBy(), 1), max(want.GetOrder(), 1)
			want.OnRelease, want.OnExpiry = max(want.GetOnRelease(), 1), max(want.GetOnExpiry(), 1)
			if got := definitionMessage(definitionOf(m)); !proto.Equal(got, want) {
				t.Errorf("%v is %v", m, got)
			}
		}
	}
	for _, unknown := range []int32{-1, 256, 257, 1 << 30} {
		if d := definitionOf(&idnodev1.SeriesDefinition{Order: idnodev1.SeriesOrder(unknown)}); d.Order <= series.OrderOneOpen {
			t.Errorf("the order %d is %d", unknown, d.Order)
		}
	}
	d := definitionOf(&idnodev1.SeriesDefinition{
		ResetBy:  idnodev1.SeriesReset_SERIES_RESET_FISCAL_YEAR,
		OnExpiry: idnodev1.SeriesOnExpiry_SERIES_ON_EXPIRY_REUSE_LOWEST,
	})
	if d.Reset != format.ResetFiscalYear || d.OnExpiry != series.ExpiryReuses {
		t.Errorf("%+v", d)
	}
}
