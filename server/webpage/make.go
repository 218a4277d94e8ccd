package webpage

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/server/service"
)

// strategy says by which strategy a template becomes an id, and why.
type strategy struct {
	Strategy string `json:"strategy"`
	Why      string `json:"why"`
	// Quorum says that it takes one; of a semantic id, claiming does.
	Quorum bool `json:"needs_quorum"`
	// May are the caller's rights on the id.
	May string `json:"may"`
}

// strategyOf explains a template that docid has taken apart.
func strategyOf(t docid.Template) strategy {
	s := strategy{Strategy: t.Kind.String()}
	switch t.Kind {
	case docid.GUID:
		s.Why = "The template is empty or white space, so the node makes a random GUID. It needs no other node for that."
	case docid.ServerSide:
		s.Why = fmt.Sprintf("The template ends with the separator %q, so the node adds its own etag for this database, and its tag. "+
			"It needs no other node for that.", t.Separator)
	case docid.Identity:
		s.Why = fmt.Sprintf("The template ends with a pipe, so the cluster agrees on the next value of the identity %q. That takes a quorum.", t.Name)
		s.Quorum = true
	default:
		s.Why = fmt.Sprintf("The template ends neither with the separator %q nor with a pipe, so it is taken as the finished id that it is. "+
			"Only claiming it takes a quorum.", t.Separator)
	}
	return s
}

// parse is docid's, with its error as the service words it.
func parse(template, separator string) (docid.Template, error) {
	t, err := docid.Parse(template, separator)
	var bad *docid.Error
	if errors.As(err, &bad) {
		return t, &problem{Status: http.StatusBadRequest, Reason: bad.Reason, Field: bad.Field, Message: bad.Error()}
	}
	return t, err
}

// explain says what a template would become, before anything is made of it.
func (p *Page) explain(r *http.Request) (any, error) {
	q := r.URL.Query()
	t, err := parse(q.Get("template"), q.Get("separator"))
	if err != nil {
		return nil, err
	}
	s := strategyOf(t)
	s.May = p.may(r, q.Get("template"))
	return s, nil
}

type idsRequest struct {
	request
	Template  string `json:"template"`
	Separator string `json:"separator"`
	Count     int64  `json:"count"`
	Claim     bool   `json:"claim"`
}

type idsAnswer struct {
	strategy
	IDs     []string `json:"ids"`
	NodeTag string   `json:"node_tag"`
}

func (p *Page) makeIDs(r *http.Request, body idsRequest) (any, error) {
	t, err := parse(body.Template, body.Separator)
	if err != nil {
		return nil, err
	}
	req := service.GenerateRequest{
		Database: body.Database, Template: body.Template, Separator: body.Separator, Count: body.Count, Claim: body.Claim,
	}
	if t.Kind == docid.Identity || t.Kind == docid.Semantic {
		req.RequestID = body.id() // The others take none.
	}
	res, err := p.service.Generate(r.Context(), req)
	if err != nil {
		return nil, err
	}
	return idsAnswer{strategy: strategyOf(t), IDs: res.IDs, NodeTag: res.NodeTag}, nil
}

type rangeRequest struct {
	request
	Tag string `json:"tag"`
	// Size is 0 for the size that the cluster chooses.
	Size int64 `json:"size"`
}

type rangeAnswer struct {
	strategy
	Prefix  string `json:"prefix"`
	Low     int64  `json:"low,string"`
	High    int64  `json:"high,string"`
	NodeTag string `json:"node_tag"`
	// Token proves whose range it is when it is given back.
	Token []byte `json:"token"`
}

func (p *Page) takeRange(r *http.Request, body rangeRequest) (any, error) {
	res, err := p.service.NextRange(r.Context(), service.NextRangeRequest{
		Database: body.Database, Tag: body.Tag, Size: body.Size, RequestID: body.id(),
	})
	why := strategy{
		Strategy: "HiLo", Quorum: true,
		Why: "A collection's tag was given, so the cluster reserved the next range of its numbers. A client uses them up without another call.",
	}
	return rangeAnswer{strategy: why, Prefix: res.Prefix, Low: res.Low, High: res.High, NodeTag: res.NodeTag, Token: res.Token[:]}, err
}

type returnRequest struct {
	request
	Tag   string `json:"tag"`
	Low   int64  `json:"low,string"`
	High  int64  `json:"high,string"`
	Token []byte `json:"token"`
}

// returnRange gives back a range of which no number was used.
func (p *Page) returnRange(r *http.Request, body returnRequest) (any, error) {
	res, err := p.service.ReturnRange(r.Context(), service.ReturnRangeRequest{
		Database: body.Database, Tag: body.Tag, Low: body.Low, High: body.High, Last: body.Low - 1, Token: body.Token, RequestID: body.id(),
	})
	return struct {
		Returned bool `json:"returned"`
	}{res.Returned}, err
}
