package httpapi

import (
	"bytes"
	"math"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/service"
)

const pipe = "|"

// withPipe returns the name of an identity with the pipe that clients may leave
// out, so that both forms are the same request to a request id.
func withPipe(name string) string {
	if strings.HasSuffix(name, pipe) {
		return name
	}
	return name + pipe
}

func (a *api) nextIdentity(w http.ResponseWriter, r *http.Request, p *params) error {
	req := &idnodev1.NextIdentityRequest{
		Database: r.PathValue("db"), Name: withPipe(p.needed(paramName)), RequestId: p.requestID(),
	}
	if p.err != nil {
		return p.err
	}
	res, err := a.service.NextIdentity(r.Context(), req)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, struct{ NewIdentityValue int64 }{res.GetBlocks()[0].GetFirst()})
	return nil
}

func (a *api) seedIdentity(w http.ResponseWriter, r *http.Request, p *params) error {
	req := &idnodev1.SeedIdentityRequest{
		Database: r.PathValue("db"), Name: withPipe(p.needed(paramName)), Value: proto.Int64(p.neededNumber("value")),
		Force: p.flag("force"), RequestId: p.requestID(),
	}
	if p.err != nil {
		return p.err
	}
	res, err := a.service.SeedIdentity(r.Context(), req)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, struct{ NewSeedValue int64 }{res.GetValue()})
	return nil
}

// listBytes is what a page of the longest names holds, beside its part of the answer.
const listBytes = service.MaxPageSize * 2 << 10

// listIdentities writes all identities from start on, or pageSize of them, as
// one object. It is written page by page: there may be a million.
func (a *api) listIdentities(w http.ResponseWriter, r *http.Request, p *params) error {
	start, size := p.number("start", 0), p.number("pageSize", math.MaxInt64)
	if p.err == nil && (start < 0 || size < 0) {
		p.fail("start %d and pageSize %d must not be negative", start, size)
	}
	if p.err != nil {
		return p.err
	}
	if counted, ok := w.(*loggedResponse); ok {
		if !counted.held.Hold(listBytes) {
			a.refused(apierror.ReasonOverloaded, 1)
			return apierror.ErrOverloaded
		}
		defer counted.held.Give(listBytes)
	}
	req := &idnodev1.ListIdentitiesRequest{Database: r.PathValue("db"), PageSize: service.MaxPageSize}
	res, err := a.service.ListIdentities(r.Context(), req)
	if err != nil {
		return err
	}
	setHeaders(w)
	out := objectWriter{w: w, extend: a.extend}
	out.raw([]byte("{"))
	for {
		page := res.GetIdentities()
		skipped := min(start, int64(len(page)))
		page = page[skipped:]
		page = page[:min(size, int64(len(page)))]
		start, size = start-skipped, size-int64(len(page))
		out.write(page)
		if size == 0 || res.GetNextPageToken() == "" {
			break
		}
		// Only the first page makes sure that it is new enough: the state never becomes older.
		req.PageToken, req.Consistency = res.GetNextPageToken(), idnodev1.Consistency_CONSISTENCY_STALE
		if res, err = a.service.ListIdentities(r.Context(), req); err != nil {
			panic(http.ErrAbortHandler) // Half an object must not look like a whole one.
		}
	}
	out.raw([]byte("}"))
	return nil
}

// objectWriter writes a JSON object of identities in parts.
type objectWriter struct {
	w      http.ResponseWriter
	extend func(http.ResponseWriter)
	// some says that a member was written, so that a comma comes before the next.
	some bool
}

func (o *objectWriter) write(page []*idnodev1.Identity) {
	var b bytes.Buffer
	for _, i := range page {
		if o.some {
			b.WriteByte(',')
		}
		o.some = true
		key, err := encode(i.GetName() + pipe)
		if err != nil {
			panic(err) // a text always has a JSON form
		}
		b.Write(key)
		b.WriteByte(':')
		b.WriteString(strconv.FormatInt(i.GetValue(), 10))
	}
	o.raw(b.Bytes())
}

// raw gives the reader time for each part. When it has gone, the rest is not written.
func (o *objectWriter) raw(b []byte) {
	o.extend(o.w)
	if _, err := o.w.Write(b); err != nil {
		panic(http.ErrAbortHandler)
	}
}
