package grpcapi

import (
	"context"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
	"github.com/idnode/idnode/server/service"
)

// seriesServer adapts the use cases of series of document numbers.
type seriesServer struct {
	idnodev1.UnimplementedSeriesServiceServer
	service *service.Service
}

// chosen returns a choice of the API as packages series and format number it: from 0, with
// the default first, where the API has 0 for the default too. One that is unknown here is
// the greatest, which is unknown there.
func chosen[T ~uint8](enum int32) T {
	if enum < 0 || enum > math.MaxUint8 {
		return math.MaxUint8
	}
	return T(max(enum, 1) - 1)
}

func definitionOf(m *idnodev1.SeriesDefinition) series.Definition {
	return series.Definition{
		Format: m.GetFormat(), Reset: chosen[format.Reset](int32(m.GetResetBy())), Order: chosen[series.Order](int32(m.GetOrder())),
		OnRelease: chosen[series.OnRelease](int32(m.GetOnRelease())), OnExpiry: chosen[series.OnExpiry](int32(m.GetOnExpiry())),
		ExpiresIn: m.GetExpiresIn().AsDuration(), MaxOpen: m.GetMaxOpen(), MaxKeys: m.GetMaxKeys(), TimeZone: m.GetTimeZone(),
		MaxAheadDays: m.GetMaxAheadDays(),
	}
}

func seriesOf(s service.SeriesInfo) *idnodev1.Series {
	d := s.Definition
	definition := &idnodev1.SeriesDefinition{
		Format: d.Format, ResetBy: idnodev1.SeriesReset(d.Reset + 1), Order: idnodev1.SeriesOrder(d.Order + 1),
		OnRelease: idnodev1.SeriesOnRelease(d.OnRelease + 1), OnExpiry: idnodev1.SeriesOnExpiry(d.OnExpiry + 1),
		MaxOpen: d.MaxOpen, MaxKeys: d.MaxKeys, TimeZone: d.TimeZone, MaxAheadDays: d.MaxAheadDays,
	}
	if d.ExpiresIn > 0 {
		definition.ExpiresIn = durationpb.New(d.ExpiresIn)
	}
	return &idnodev1.Series{Name: s.Name, Definition: definition, Version: s.Version, Suspended: s.Suspended, Keys: s.Keys}
}

func seriesNumber(n series.Number) *idnodev1.SeriesNumber {
	m := &idnodev1.SeriesNumber{
		Key: n.Key, Text: n.Text, Scope: n.Scope, Number: n.Number, State: idnodev1.NumberState(n.State), Overdue: n.Overdue,
		Label: n.Label, Reason: n.Reason,
	}
	if n.Taken != 0 {
		m.Date, m.Taken = n.Date.String(), timestamppb.New(time.Unix(0, n.Taken))
	}
	if n.Expires != 0 {
		m.Expires = timestamppb.New(time.Unix(0, n.Expires))
	}
	return m
}

func seriesNumbers(numbers []series.Number) []*idnodev1.SeriesNumber {
	list := make([]*idnodev1.SeriesNumber, len(numbers))
	for i, n := range numbers {
		list[i] = seriesNumber(n)
	}
	return list
}

func (s seriesServer) DefineSeries(ctx context.Context, req *idnodev1.DefineSeriesRequest) (*idnodev1.DefineSeriesResponse, error) {
	define := service.DefineSeriesRequest{
		Database: req.GetDatabase(), Name: req.GetName(), Definition: definitionOf(req.GetDefinition()),
		ExpectedVersion: req.GetExpectedVersion(), DryRun: req.GetDryRun(),
	}
	for _, b := range req.GetBegins() {
		define.Begins = append(define.Begins, series.Begin{Scope: b.GetScope(), First: b.GetFirst()})
	}
	res, err := s.service.DefineSeries(ctx, define)
	if err != nil {
		return nil, statusError(err)
	}
	p := res.Preview
	return &idnodev1.DefineSeriesResponse{
		Version: res.Version, LogIndex: res.LogIndex, Suspended: res.Suspended,
		Preview: &idnodev1.SeriesPreview{Texts: p.Texts, Values: p.Values, BeginsAgain: p.BeginsAgain, Forgets: p.Forgets},
	}, nil
}

func (s seriesServer) DeleteSeries(ctx context.Context, req *idnodev1.DeleteSeriesRequest) (*idnodev1.DeleteSeriesResponse, error) {
	index, err := s.service.DeleteSeries(ctx, service.DeleteSeriesRequest{
		Database: req.GetDatabase(), Name: req.GetName(), ExpectedVersion: req.GetExpectedVersion(),
	})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.DeleteSeriesResponse{LogIndex: index}, nil
}

func (s seriesServer) GetSeries(ctx context.Context, req *idnodev1.GetSeriesRequest) (*idnodev1.GetSeriesResponse, error) {
	res, err := s.service.GetSeries(ctx, service.SeriesRequest{Database: req.GetDatabase(), Series: req.GetName(), Consistency: consistencyOf(req.GetConsistency())})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.GetSeriesResponse{Series: seriesOf(res.Series), LogIndex: res.LogIndex}, nil
}

func (s seriesServer) ListSeries(ctx context.Context, req *idnodev1.ListSeriesRequest) (*idnodev1.ListSeriesResponse, error) {
	res, err := s.service.ListSeries(ctx, listRequest(req))
	if err != nil {
		return nil, statusError(err)
	}
	answer := &idnodev1.ListSeriesResponse{NextPageToken: res.NextPageToken, LogIndex: res.LogIndex}
	for _, i := range res.Items {
		answer.Series = append(answer.Series, seriesOf(i))
	}
	return answer, nil
}

func (s seriesServer) TakeNumbers(ctx context.Context, req *idnodev1.TakeNumbersRequest) (*idnodev1.TakeNumbersResponse, error) {
	res, err := s.service.TakeNumbers(ctx, service.TakeNumbersRequest{
		Database: req.GetDatabase(), Series: req.GetSeries(), Keys: req.GetKeys(), Values: req.GetValues(), Date: req.GetDate(),
		Label: req.GetLabel(), ExpiresIn: req.GetExpiresIn().AsDuration(),
	})
	if err != nil {
		return nil, statusError(err)
	}
	answer := &idnodev1.TakeNumbersResponse{Numbers: seriesNumbers(res.Numbers), LogIndex: res.LogIndex}
	if res.Before != nil {
		answer.Before = &idnodev1.ScopeLast{Scope: res.Before.Scope, Last: res.Before.Last}
	}
	return answer, nil
}

// boundKeys returns keys with the numbers that their caller believes they have.
func boundKeys(keys []*idnodev1.NumberOf) []series.Bound {
	list := make([]series.Bound, len(keys))
	for i, k := range keys {
		list[i] = series.Bound{Key: k.GetKey(), Number: k.GetNumber()}
	}
	return list
}

func (s seriesServer) ConfirmNumbers(ctx context.Context, req *idnodev1.ConfirmNumbersRequest) (*idnodev1.ConfirmNumbersResponse, error) {
	res, err := s.service.ConfirmNumbers(ctx, service.EndNumbersRequest{Database: req.GetDatabase(), Series: req.GetSeries(), Keys: boundKeys(req.GetKeys())})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.ConfirmNumbersResponse{Numbers: seriesNumbers(res.Numbers), LogIndex: res.LogIndex}, nil
}

func (s seriesServer) VoidNumbers(ctx context.Context, req *idnodev1.VoidNumbersRequest) (*idnodev1.VoidNumbersResponse, error) {
	res, err := s.service.VoidNumbers(ctx, service.EndNumbersRequest{
		Database: req.GetDatabase(), Series: req.GetSeries(), Keys: boundKeys(req.GetKeys()), Reason: req.GetReason(),
	})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.VoidNumbersResponse{Numbers: seriesNumbers(res.Numbers), LogIndex: res.LogIndex}, nil
}

func (s seriesServer) ReleaseNumbers(ctx context.Context, req *idnodev1.ReleaseNumbersRequest) (*idnodev1.ReleaseNumbersResponse, error) {
	res, err := s.service.ReleaseNumbers(ctx, service.EndNumbersRequest{Database: req.GetDatabase(), Series: req.GetSeries(), Keys: boundKeys(req.GetKeys())})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.ReleaseNumbersResponse{Numbers: seriesNumbers(res.Numbers), LogIndex: res.LogIndex}, nil
}

func (s seriesServer) ReportSeries(ctx context.Context, req *idnodev1.ReportSeriesRequest) (*idnodev1.ReportSeriesResponse, error) {
	res, err := s.service.ReportSeries(ctx, service.SeriesPageRequest{
		SeriesRequest: seriesRequest(req), PageSize: int(req.GetPageSize()), PageToken: req.GetPageToken(),
	})
	if err != nil {
		return nil, statusError(err)
	}
	answer := &idnodev1.ReportSeriesResponse{NextPageToken: res.NextPageToken, LogIndex: res.LogIndex}
	for _, c := range res.Items {
		answer.Scopes = append(answer.Scopes, &idnodev1.ScopeReport{
			Scope: c.Scope, Last: c.Last, LastDate: lastDate(c.LastDate), Closed: c.Closed,
			Before: c.Before, Open: c.Open, Overdue: c.Overdue, Confirmed: c.Confirmed, Voided: c.Voided, Released: c.Released, Unknown: c.Unknown,
		})
	}
	return answer, nil
}

// lastDate is empty for a scope that has no number with a date.
func lastDate(d format.Date) string {
	if d == format.FirstDate {
		return ""
	}
	return d.String()
}

// readOfSeries is a request that reads a series.
type readOfSeries interface {
	GetDatabase() string
	GetSeries() string
	GetConsistency() idnodev1.Consistency
}

func seriesRequest(req readOfSeries) service.SeriesRequest {
	return service.SeriesRequest{Database: req.GetDatabase(), Series: req.GetSeries(), Consistency: consistencyOf(req.GetConsistency())}
}

func (s seriesServer) ListNumbers(ctx context.Context, req *idnodev1.ListNumbersRequest) (*idnodev1.ListNumbersResponse, error) {
	if req.GetState() < 0 || req.GetState() > idnodev1.NumberState_NUMBER_STATE_UNKNOWN {
		return nil, statusError(badRequest(service.ReasonInvalidSeries, "state", "there is no such state"))
	}
	res, err := s.service.ListNumbers(ctx, service.SeriesPageRequest{
		SeriesRequest: seriesRequest(req), Scope: req.GetScope(), State: series.State(req.GetState()),
		PageSize: int(req.GetPageSize()), PageToken: req.GetPageToken(),
	})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.ListNumbersResponse{Numbers: seriesNumbers(res.Items), NextPageToken: res.NextPageToken, LogIndex: res.LogIndex}, nil
}

func (s seriesServer) WhoHas(ctx context.Context, req *idnodev1.WhoHasRequest) (*idnodev1.WhoHasResponse, error) {
	res, err := s.service.WhoHas(ctx, service.WhoHasRequest{SeriesRequest: seriesRequest(req), Key: req.GetKey(), Text: req.GetText()})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.WhoHasResponse{Number: seriesNumber(res.Number), LogIndex: res.LogIndex}, nil
}

func (s seriesServer) FormatNumber(ctx context.Context, req *idnodev1.FormatNumberRequest) (*idnodev1.FormatNumberResponse, error) {
	text, err := s.service.FormatNumber(ctx, service.FormatNumberRequest{
		FormatRequest: formatRequest(req), Values: req.GetValues(), Date: req.GetDate(), Number: req.GetNumber(),
	})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.FormatNumberResponse{Text: text}, nil
}

func (s seriesServer) ParseNumber(ctx context.Context, req *idnodev1.ParseNumberRequest) (*idnodev1.ParseNumberResponse, error) {
	res, err := s.service.ParseNumber(ctx, service.ParseNumberRequest{FormatRequest: formatRequest(req), Text: req.GetText()})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.ParseNumberResponse{Valid: res.Wrong == "", Detail: res.Wrong, Scope: res.Scope, Number: res.Number}, nil
}

// formatted is a request that names a format.
type formatted interface {
	GetDatabase() string
	GetSeries() string
	GetFormat() string
}

func formatRequest(req formatted) service.FormatRequest {
	return service.FormatRequest{Database: req.GetDatabase(), Series: req.GetSeries(), Template: req.GetFormat()}
}

func (s seriesServer) VerifySeries(ctx context.Context, req *idnodev1.VerifySeriesRequest) (*idnodev1.VerifySeriesResponse, error) {
	res, err := s.service.VerifySeries(ctx, service.VerifySeriesRequest{SeriesRequest: seriesRequest(req), PageToken: req.GetPageToken()})
	if err != nil {
		return nil, statusError(err)
	}
	if wrong := res.Wrong; wrong != nil {
		return &idnodev1.VerifySeriesResponse{Scope: wrong.Scope, Number: wrong.Number, Detail: wrong.Detail, LogIndex: res.LogIndex}, nil
	}
	return &idnodev1.VerifySeriesResponse{Ok: res.NextPageToken == "", NextPageToken: res.NextPageToken, LogIndex: res.LogIndex}, nil
}

func (s seriesServer) CloseScope(ctx context.Context, req *idnodev1.CloseScopeRequest) (*idnodev1.CloseScopeResponse, error) {
	res, err := s.service.CloseScope(ctx, service.ScopeRequest{Database: req.GetDatabase(), Series: req.GetSeries(), Scope: req.GetScope()})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.CloseScopeResponse{Last: res.Value, LogIndex: res.LogIndex}, nil
}

func (s seriesServer) ResumeSeries(ctx context.Context, req *idnodev1.ResumeSeriesRequest) (*idnodev1.ResumeSeriesResponse, error) {
	resume := service.ResumeSeriesRequest{Database: req.GetDatabase(), Series: req.GetSeries(), More: req.GetMore()}
	for _, l := range req.GetBooks() {
		resume.Books = append(resume.Books, service.ScopeInBooks{
			Scope: l.GetScope(), Last: l.GetLast(), LastDate: l.GetLastDate(), Closed: l.GetClosed(),
		})
	}
	index, err := s.service.ResumeSeries(ctx, resume)
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.ResumeSeriesResponse{LogIndex: index}, nil
}
