package webpage

import (
	"net/http"

	"github.com/idnode/idnode/server/service"
)

// request is what every change has. The request id makes a click count once: the
// page sends the same one again if it did not learn the outcome of the first.
type request struct {
	Database  string `json:"database"`
	RequestID string `json:"request_id"`
}

func (r request) id() *service.RequestID {
	if r.RequestID == "" {
		return nil
	}
	return &service.RequestID{ID: r.RequestID}
}

type seedRequest struct {
	request
	Name  string `json:"name"`
	Value int64  `json:"value,string"`
	Force bool   `json:"force"`
	// Expected is the value that the viewer saw before it lowers a counter.
	Expected *int64 `json:"expected,string"`
}

func (p *Page) seedIdentity(r *http.Request, body seedRequest) (any, error) {
	res, err := p.service.SeedIdentity(r.Context(), service.SeedIdentityRequest{
		Database: body.Database, Name: body.Name, Value: body.Value, Force: body.Force, Expected: body.Expected, RequestID: body.id(),
	})
	return item{Name: body.Name, Value: res.Value}, err
}

type deleteRequest struct {
	request
	Name   string `json:"name"`
	Forget bool   `json:"forget"`
}

func (p *Page) deleteIdentity(r *http.Request, body deleteRequest) (any, error) {
	res, err := p.service.DeleteIdentity(r.Context(), service.DeleteIdentityRequest{
		Database: body.Database, Name: body.Name, Forget: body.Forget, RequestID: body.id(),
	})
	return item{Name: body.Name, Value: res.Value}, err
}

type raiseRequest struct {
	request
	Tag      string `json:"tag"`
	Max      int64  `json:"max,string"`
	Expected int64  `json:"expected,string"`
}

func (p *Page) raiseHiLo(r *http.Request, body raiseRequest) (any, error) {
	res, err := p.service.SetHiLo(r.Context(), service.SetHiLoRequest{
		Database: body.Database, Tag: body.Tag, Max: body.Max, Expected: body.Expected, RequestID: body.id(),
	})
	return item{Name: body.Tag, Value: res.Value}, err
}

type claimRequest struct {
	request
	ID string `json:"id"`
}

func (p *Page) claim(r *http.Request, body claimRequest) (any, error) {
	res, err := p.service.Claim(r.Context(), service.ClaimRequest{Database: body.Database, ID: body.ID, RequestID: body.id()})
	return name{Name: res.ID}, err
}

func (p *Page) release(r *http.Request, body claimRequest) (any, error) {
	_, err := p.service.Release(r.Context(), service.ReleaseRequest{Database: body.Database, ID: body.ID, RequestID: body.id()})
	return name{Name: body.ID}, err
}
