package webpage

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/etags"
	"github.com/idnode/idnode/server/jsonapi"
	"github.com/idnode/idnode/server/service"
)

func database(q url.Values) string { return cmp.Or(q.Get("database"), docid.DefaultDatabase) }

// etags lists this node's counters. The parameters have the names of the public API's.
func (p *Page) etags(r *http.Request) (any, error) {
	q := r.URL.Query()
	size, _ := strconv.ParseInt(q.Get("pageSize"), 10, 32) // Any other text means the default.
	res, err := p.cfg.Service.ListOwnEtags(r.Context(), &idnodev1.ListDatabasesRequest{
		Prefix: q.Get("prefix"), PageSize: int32(size), PageToken: q.Get("pageToken"),
	})
	return struct {
		Etags []etags.Progress `json:"etags"`
		Next  string           `json:"nextPageToken"`
	}{res.Items, res.NextPageToken}, err
}

// numbers finds a document's number by its key or its text, in all series of a database.
func (p *Page) numbers(r *http.Request) (any, error) {
	q := r.URL.Query()
	found, err := p.cfg.Service.FindNumbers(r.Context(), &idnodev1.WhoHasRequest{
		Database: q.Get("database"), By: &idnodev1.WhoHasRequest_Key{Key: q.Get("of")},
	})
	type number struct {
		Series string          `json:"series"`
		Number json.RawMessage `json:"number"`
	}
	all := []number{}
	for _, f := range found {
		body, failed := jsonapi.Encode(f.Number)
		err = errors.Join(err, failed)
		all = append(all, number{f.Series, body})
	}
	return struct {
		Numbers []number `json:"numbers"`
	}{all}, err
}

type strategy struct {
	Strategy string `json:"strategy"`
	Why      string `json:"why"`
	// Quorum says that it takes one; of a semantic id, claiming does.
	Quorum bool `json:"needs_quorum"`
	// May are the caller's rights on the id.
	May string `json:"may"`
}

func strategyOf(t docid.Template) strategy {
	s := strategy{Strategy: t.Kind.String()}
	switch t.Kind {
	case docid.GUID:
		s.Why = "The template is empty or white space, so the node makes a random GUID. It needs no other node for that."
	case docid.ServerSide:
		s.Why = fmt.Sprintf("The template ends with the separator %q, so the node adds its own etag for this database, and its tag. "+
			"It needs no other node for that.", t.Separator)
	case docid.Identity:
		s.Why = fmt.Sprintf("The template ends with a pipe, so the cluster agrees on the next value of the identity %q. That takes a quorum.",
			t.Name)
		s.Quorum = true
	default:
		s.Why = fmt.Sprintf("The template ends neither with the separator %q nor with a pipe, so it is taken as the finished id that it is. "+
			"Only claiming it takes a quorum.", t.Separator)
	}
	return s
}

// explain says what a template would become, before anything is made of it. An error is
// docid's, as the service words it.
func (p *Page) explain(r *http.Request) (any, error) {
	q := r.URL.Query()
	t, err := docid.Parse(q.Get("template"), q.Get("separator"))
	if err != nil {
		return nil, service.BadForm(err)
	}
	s := strategyOf(t)
	s.May = p.cfg.Service.Rights(r.Context(), database(q), q.Get("template")).String()
	return s, nil
}
