package page

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/idnode/idnode/internal/service"
)

// item is one row of a list. Numbers are text: a browser's are exact to 2^53
// only.
type item struct {
	Name  string `json:"name"`
	Value int64  `json:"value,string"`
}

// list is one page of a listing.
type list[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next"`
}

func listOf[S, T any](all []S, next string, shown func(S) T) list[T] {
	l := list[T]{Items: make([]T, 0, len(all)), Next: next}
	for _, one := range all {
		l.Items = append(l.Items, shown(one))
	}
	return l
}

// listRequest reads the parameters that all lists have: database, prefix, size,
// token, and fresh, which asks for what the cluster knows rather than the node.
func listRequest(r *http.Request) (service.ListRequest, error) {
	q := r.URL.Query()
	req := service.ListRequest{
		Database: q.Get("database"), Prefix: q.Get("prefix"), PageToken: q.Get("token"), Consistency: consistency(q),
	}
	if size := q.Get("size"); size != "" {
		var err error
		if req.PageSize, err = strconv.Atoi(size); err != nil {
			return req, &problem{
				Status: http.StatusBadRequest, Reason: service.ReasonInvalidPageSize, Field: "size", Message: "the size is no number",
			}
		}
	}
	return req, nil
}

// consistency is stale unless the call asks otherwise: the page looks every few
// seconds, also at a node without a quorum.
func consistency(q url.Values) service.Consistency {
	if q.Get("fresh") == "true" {
		return service.Linearizable
	}
	return service.Stale
}

func (p *Page) identities(r *http.Request) (any, error) {
	req, err := listRequest(r)
	if err != nil {
		return nil, err
	}
	res, err := p.service.ListIdentities(r.Context(), req)
	return listOf(res.Identities, res.NextPageToken, func(i service.Identity) item { return item{i.Name, i.Value} }), err
}

func (p *Page) hilos(r *http.Request) (any, error) {
	req, err := listRequest(r)
	if err != nil {
		return nil, err
	}
	res, err := p.service.ListHiLo(r.Context(), req)
	return listOf(res.HiLos, res.NextPageToken, func(h service.HiLo) item { return item{h.Tag, h.Max} }), err
}

// name is a row that has no number.
type name struct {
	Name string `json:"name"`
}

func nameOf(s string) name { return name{s} }

func (p *Page) claims(r *http.Request) (any, error) {
	req, err := listRequest(r)
	if err != nil {
		return nil, err
	}
	res, err := p.service.ListClaims(r.Context(), req)
	return listOf(res.IDs, res.NextPageToken, nameOf), err
}

func (p *Page) databases(r *http.Request) (any, error) {
	req, err := listRequest(r)
	if err != nil {
		return nil, err
	}
	res, err := p.service.ListDatabases(r.Context(), req)
	return listOf(res.Databases, res.NextPageToken, nameOf), err
}

// etag is this node's counter of one database.
type etag struct {
	Name     string `json:"name"`
	Last     uint64 `json:"last,string"`
	Reserved uint64 `json:"reserved,string"`
	Ceiling  uint64 `json:"ceiling,string"`
}

func (p *Page) etags(r *http.Request) (any, error) {
	req, err := listRequest(r)
	if err != nil {
		return nil, err
	}
	res, err := p.service.ListOwnEtags(r.Context(), req)
	return listOf(res.Etags, res.NextPageToken, func(e service.OwnEtag) etag {
		return etag{Name: e.Database, Last: e.Last, Reserved: e.Reserved, Ceiling: e.Ceiling}
	}), err
}

// identity is the value of one identity, for a seed to be compared with.
func (p *Page) identity(r *http.Request) (any, error) {
	q := r.URL.Query()
	res, err := p.service.GetIdentity(r.Context(), service.GetIdentityRequest{
		Database: q.Get("database"), Name: q.Get("name"), Consistency: consistency(q),
	})
	return item{res.Identity.Name, res.Identity.Value}, err
}

// hilo is the value of one HiLo counter.
func (p *Page) hilo(r *http.Request) (any, error) {
	q := r.URL.Query()
	res, err := p.service.GetHiLo(r.Context(), service.GetHiLoRequest{
		Database: q.Get("database"), Tag: q.Get("name"), Consistency: consistency(q),
	})
	return item{res.HiLo.Tag, res.HiLo.Max}, err
}
