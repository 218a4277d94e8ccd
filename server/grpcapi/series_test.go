package grpcapi

import (
	"testing"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/client/idnodev1"
)

// TestAScopeWithoutNumbersHasNoDate, also where it begins in mid-year.
func TestAScopeWithoutNumbersHasNoDate(t *testing.T) {
	client := idnodev1.NewSeriesServiceClient(serve(t, Config{}, nil).conn)
	define := &idnodev1.DefineSeriesRequest{
		Name: "s", Definition: &idnodev1.SeriesDefinition{Format: "{number}"}, Begins: []*idnodev1.ScopeBegin{{First: 543}},
	}
	if _, err := client.DefineSeries(t.Context(), define); err != nil {
		t.Fatal(err)
	}
	res, err := client.ReportSeries(t.Context(), &idnodev1.ReportSeriesRequest{Series: "s"})
	if err != nil || len(res.GetScopes()) != 1 || res.GetScopes()[0].GetLastDate() != "" || res.GetScopes()[0].GetBefore() != 542 {
		t.Errorf("%v, %v", res, err)
	}
}

// TestAConflictHasTheFirstAnswer among its details.
func TestAConflictHasTheFirstAnswer(t *testing.T) {
	r := serve(t, Config{}, nil)
	client := idnodev1.NewSeriesServiceClient(r.conn)
	definition := &idnodev1.SeriesDefinition{Format: "{till}-{number}", ExpiresIn: durationpb.New(time.Hour)}
	if _, err := client.DefineSeries(t.Context(), &idnodev1.DefineSeriesRequest{Name: "s", Definition: definition}); err != nil {
		t.Fatal(err)
	}
	take := func(till string) (*idnodev1.TakeNumbersResponse, error) {
		return client.TakeNumbers(t.Context(),
			&idnodev1.TakeNumbersRequest{Series: "s", Keys: []string{"a"}, Values: map[string]string{"till": till}})
	}
	first, err := take("7")
	if err != nil {
		t.Fatal(err)
	}
	n := first.GetNumbers()[0]
	if n.GetText() != "7-1" || n.GetState() != idnodev1.NumberState_NUMBER_STATE_OPEN || n.GetTaken() == nil ||
		n.GetExpires().AsTime().Sub(n.GetTaken().AsTime()) != time.Hour || n.GetDate() == "" {
		t.Errorf("%v", n)
	}
	_, err = take("8")
	for _, d := range status.Convert(err).Details() {
		if got, ok := d.(*idnodev1.SeriesNumber); ok {
			if !proto.Equal(got, n) {
				t.Errorf("%v, not %v", got, n)
			}
			return
		}
	}
	t.Errorf("no number is in %v", err)
}
