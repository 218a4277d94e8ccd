package webpage

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
)

func database(q url.Values) string { return cmp.Or(q.Get("database"), docid.DefaultDatabase) }

// databasesRequest reads the parameters of a list, which have the names of the public API's.
func databasesRequest(r *http.Request) *idnodev1.ListDatabasesRequest {
	q := r.URL.Query()
	size, _ := strconv.ParseInt(q.Get("pageSize"), 10, 32) // Any other text means the default.
	return &idnodev1.ListDatabasesRequest{Prefix: q.Get("prefix"), PageSize: int32(size), PageToken: q.Get("pageToken")}
}

// etag is this node's counter of one database. Numbers are text: a browser's are exact to
// 2^53 only.
type etag struct {
	Name     string `json:"name"`
	Last     uint64 `json:"last,string"`
	Reserved uint64 `json:"reserved,string"`
	Ceiling  uint64 `json:"ceiling,string"`
}

func (p *Page) etags(r *http.Request) (any, error) {
	res, err := p.cfg.Service.ListOwnEtags(r.Context(), databasesRequest(r))
	etags := make([]etag, len(res.Items))
	for i, e := range res.Items {
		etags[i] = etag{Name: e.Database, Last: e.Last, Reserved: e.Reserved, Ceiling: e.Ceiling}
	}
	return struct {
		Etags []etag `json:"etags"`
		Next  string `json:"nextPageToken"`
	}{etags, res.NextPageToken}, err
}
