package webpage

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"

	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/server/service"
)

// item is one row of a list. Numbers are text: a browser's are exact to 2^53
// only.
type item struct {
	Name  string `json:"name"`
	Value int64  `json:"value,string"`
	// May are the caller's rights on it.
	May string `json:"may"`
}

// list is one page of a listing.
type list[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next"`
}

func listOf[S, T any](page service.Page[S], shown func(S) T) list[T] {
	l := list[T]{Items: make([]T, 0, len(page.Items)), Next: page.NextPageToken}
	for _, one := range page.Items {
		l.Items = append(l.Items, shown(one))
	}
	return l
}

// listRequest reads the parameters that all lists have: database, prefix, size, which is
// no larger than the default, token, and fresh, which asks for what the cluster knows
// rather than the node.
func listRequest(r *http.Request) (service.ListRequest, error) {
	q := r.URL.Query()
	req := service.ListRequest{
		Database: q.Get("database"), Prefix: q.Get("prefix"), PageSize: service.DefaultPageSize, PageToken: q.Get("token"), Consistency: consistency(q),
	}
	if size := q.Get("size"); size != "" {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 {
			return req, &problem{
				Status: http.StatusBadRequest, Reason: service.ReasonInvalidPageSize, Field: "size", Message: "the size is no number above 0",
			}
		}
		req.PageSize = min(n, req.PageSize) // As JSON, a name can have 12,000 bytes.
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

// may returns the caller's rights on a name of the database in its request.
func (p *Page) may(r *http.Request, name string) string {
	return p.service.Rights(r.Context(), database(r.URL.Query()), name).String()
}

// database is the one that a call names, in its parameters.
func database(q url.Values) string { return cmp.Or(q.Get("database"), docid.DefaultDatabase) }

func (p *Page) identities(r *http.Request) (any, error) {
	return arranged(p, r, p.service.ListIdentities, orders[service.Identity]{
		"value": func(a, b service.Identity) int { return cmp.Compare(a.Value, b.Value) },
	}, func(i service.Identity) item { return item{i.Name, i.Value, p.may(r, i.Name)} })
}

func (p *Page) hilos(r *http.Request) (any, error) {
	return arranged(p, r, p.service.ListHiLo, orders[service.HiLo]{
		"value": func(a, b service.HiLo) int { return cmp.Compare(a.Max, b.Max) },
	}, func(h service.HiLo) item { return item{h.Tag, h.Max, p.may(r, h.Tag)} })
}

// name is a row that has no number.
type name struct {
	Name string `json:"name"`
	May  string `json:"may"`
}

func (p *Page) claims(r *http.Request) (any, error) {
	return arranged(p, r, p.service.ListClaims, nil, func(id string) name { return name{id, p.may(r, id)} })
}

func (p *Page) databases(r *http.Request) (any, error) {
	req, err := listRequest(r)
	if err != nil {
		return nil, err
	}
	res, err := p.service.ListDatabases(r.Context(), req)
	return listOf(res, func(s string) name { return name{Name: s} }), err
}

// etag is this node's counter of one database.
type etag struct {
	Name     string `json:"name"`
	Last     uint64 `json:"last,string"`
	Reserved uint64 `json:"reserved,string"`
	Ceiling  uint64 `json:"ceiling,string"`
}

func (p *Page) etags(r *http.Request) (any, error) {
	return arranged(p, r, p.service.ListOwnEtags, orders[service.OwnEtag]{
		"last":     func(a, b service.OwnEtag) int { return cmp.Compare(a.Last, b.Last) },
		"reserved": func(a, b service.OwnEtag) int { return cmp.Compare(a.Reserved, b.Reserved) },
		"ceiling":  func(a, b service.OwnEtag) int { return cmp.Compare(a.Ceiling, b.Ceiling) },
	}, func(e service.OwnEtag) etag {
		return etag{Name: e.Database, Last: e.Last, Reserved: e.Reserved, Ceiling: e.Ceiling}
	})
}

// identity is the value of one identity, for a seed to be compared with.
func (p *Page) identity(r *http.Request) (any, error) {
	q := r.URL.Query()
	res, err := p.service.GetIdentity(r.Context(), service.GetIdentityRequest{
		Database: q.Get("database"), Name: q.Get("name"), Consistency: consistency(q),
	})
	return item{Name: res.Identity.Name, Value: res.Identity.Value}, err
}

// hilo is the value of one HiLo counter.
func (p *Page) hilo(r *http.Request) (any, error) {
	q := r.URL.Query()
	res, err := p.service.GetHiLo(r.Context(), service.GetHiLoRequest{
		Database: q.Get("database"), Tag: q.Get("name"), Consistency: consistency(q),
	})
	return item{Name: res.HiLo.Tag, Value: res.HiLo.Max}, err
}
