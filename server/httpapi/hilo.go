package httpapi

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/apierror"
)

// hiloDocuments begins the id of every HiLo document, in any case.
const hiloDocuments = "Raven/Hilo/"

// maxExact is the number up to which a double can be any whole number. JavaScript
// reads numbers as doubles: above it, a client gives some ids twice.
const maxExact = 1 << 53

type rangeAnswer struct {
	Prefix      string
	Low, High   int64
	LastSize    int64
	ServerTag   string
	LastRangeAt string
}

// nextRange reserves a range. A caller that lost the answer asks again, which costs a hole.
func (a *api) nextRange(w http.ResponseWriter, r *http.Request, p *params) error {
	req := &idnodev1.NextRangeRequest{
		Database: r.PathValue("db"), Tag: p.needed(paramTag), Separator: p.text("identityPartsSeparator"),
		LastSize: p.number("lastBatchSize", 0), LastMax: p.number("lastMax", 0), RequestId: p.requestID(),
	}
	if at, has := p.time("lastRangeAt"); has {
		req.LastRangeAt = timestamppb.New(at)
	}
	if p.err != nil {
		return p.err
	}
	res, err := a.service.NextRangeUpTo(r.Context(), req, maxExact)
	if err != nil {
		return withExactHint(err)
	}
	writeJSON(w, http.StatusCreated, rangeAnswer{
		Prefix: res.GetPrefix(), Low: res.GetLow(), High: res.GetHigh(), LastSize: res.GetSize(),
		ServerTag: res.GetNodeTag(), LastRangeAt: res.GetRangeAt().AsTime().Format(timeFormat),
	})
	return nil
}

func withExactHint(err error) error {
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok || e.Reason != apierror.ReasonCounterExhausted {
		return err
	}
	hinted := *e
	hinted.Message += "; over HTTP no range ends above 2^53, because clients that read numbers as doubles would repeat ids"
	return &hinted
}

// returnRange gives the rest of a range back. Clients do so when they close, even if they never had
// a range (end 0), or counted beyond its end. So numbers that fit no range are no error.
func (a *api) returnRange(w http.ResponseWriter, r *http.Request, p *params) error {
	req := &idnodev1.ReturnRangeRequest{
		Database: r.PathValue("db"), Tag: p.needed(paramTag),
		High: p.neededNumber("end"), Last: proto.Int64(p.neededNumber("last")), RequestId: p.requestID(),
	}
	if p.err != nil {
		return p.err
	}
	if req.High >= 1 && req.GetLast() >= 0 {
		if _, err := a.service.ReturnRangeByHigh(r.Context(), req); err != nil {
			return err
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

type documents struct {
	Results  []hiloDocument
	Includes struct{}
}

// hiloDocument is a counter in the form of the document it is in RavenDB.
type hiloDocument struct {
	Max      int64
	Metadata documentMetadata `json:"@metadata"`
}

type documentMetadata struct {
	Collection   string `json:"@collection"`
	ID           string `json:"@id"`
	ChangeVector string `json:"@change-vector"`
}

// hiloDocument loads one HiLo document. There are no others.
func (a *api) hiloDocument(w http.ResponseWriter, r *http.Request, p *params) error {
	ids := p.values["id"]
	if len(ids) != 1 || len(ids[0]) < len(hiloDocuments) || !strings.EqualFold(ids[0][:len(hiloDocuments)], hiloDocuments) {
		writeFailure(w, r, noDocuments("only one HiLo document, "+hiloDocuments+"{tag}, can be loaded at a time"))
		return nil
	}
	res, err := a.service.GetHiLo(r.Context(), &idnodev1.GetHiLoRequest{
		Database: r.PathValue("db"), Tag: ids[0][len(hiloDocuments):],
	})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, documents{Results: []hiloDocument{{
		Max: res.GetHilo().GetMax(),
		Metadata: documentMetadata{
			Collection: "@hilo", ID: ids[0], ChangeVector: "RAFT:" + strconv.FormatInt(res.GetHilo().GetMax(), 10),
		},
	}}})
	return nil
}
