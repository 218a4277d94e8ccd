package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/idnode/idnode/server/apierror"
)

// Full names of .NET exceptions, from which RavenDB's clients make their own.
const (
	argumentException      = "System.ArgumentException"
	authorizationException = "Raven.Client.Exceptions.Security.AuthorizationException"
	concurrencyException   = "Raven.Client.Exceptions.ConcurrencyException"
	invalidDataException   = "System.IO.InvalidDataException"
	noLeaderException      = "Raven.Client.Exceptions.NoLeaderException"
	noDocumentException    = "Raven.Client.Exceptions.Documents.DocumentDoesNotExistException"
	notSupportedException  = "System.NotSupportedException"
	operationException     = "System.InvalidOperationException"
	overflowException      = "System.OverflowException"
	ravenException         = "Raven.Client.Exceptions.RavenException"
	routeNotFoundException = "Raven.Client.Exceptions.Routing.RouteNotFoundException"
	timeoutException       = "System.TimeoutException"
)

type failure struct {
	status    int
	exception string
	message   string
	// reason is for the log; empty where the service has no part in it.
	reason string
}

// byCode are the errors of the service.
var byCode = map[apierror.Code]failure{
	apierror.CodeInvalidArgument:    {status: http.StatusBadRequest, exception: argumentException},
	apierror.CodeUnavailable:        {status: http.StatusServiceUnavailable, exception: noLeaderException},
	apierror.CodeAborted:            {status: http.StatusConflict, exception: concurrencyException},
	apierror.CodeResourceExhausted:  {status: http.StatusServiceUnavailable, exception: ravenException},
	apierror.CodeOutOfRange:         {status: http.StatusBadRequest, exception: overflowException},
	apierror.CodeAlreadyExists:      {status: http.StatusConflict, exception: concurrencyException},
	apierror.CodeFailedPrecondition: {status: http.StatusPreconditionFailed, exception: operationException},
	apierror.CodeNotFound:           {status: http.StatusNotFound, exception: noDocumentException},
	apierror.CodePermissionDenied:   {status: http.StatusForbidden, exception: authorizationException},
	// RavenDB's clients send the request to the next node, over a connection that shows the certificate of today.
	apierror.CodeUnauthenticated: {status: http.StatusServiceUnavailable, exception: authorizationException},
	apierror.CodeDataLoss:        {status: http.StatusInternalServerError, exception: invalidDataException},
	apierror.CodeInternal:        {status: http.StatusInternalServerError, exception: ravenException},
}

// failureOf translates err. Whatever is not an *apierror.Error becomes a 500, its text unseen.
//
// Invariant: clients take 408, 502, 503 and 504 as "this node failed" and send the same request
// to the next node. So these are only for what certainly did not happen, or may happen twice.
func failureOf(err error) failure {
	e := apierror.Of(err)
	f, known := byCode[e.Code]
	switch {
	case !known:
		f = byCode[apierror.CodeInternal]
	case e.Reason == apierror.ReasonOutcomeUnknown && e.Code == apierror.CodeUnavailable:
		f.exception = timeoutException // The service says Unavailable only where the same call again is safe.
	case e.Reason == apierror.ReasonOutcomeUnknown && e.Code == apierror.CodeAborted:
		f.status, f.exception = http.StatusInternalServerError, timeoutException
	case e.Code == apierror.CodeResourceExhausted && (e.Reason == apierror.ReasonQuota || e.Reason == apierror.ReasonRateLimited):
		// A limit of the cluster: the next node would say the same. A limit of the
		// caller must not be multiplied by the number of nodes.
		f.status, f.exception = http.StatusTooManyRequests, operationException
	}
	f.message, f.reason = e.Reason+": "+e.Message, e.Reason
	return f
}

// problem is the body of every error.
type problem struct {
	URL     string `json:"Url"`
	Type    string
	Message string
	Error   string
}

func writeFailure(w http.ResponseWriter, r *http.Request, f failure) {
	if logged, ok := w.(*loggedResponse); ok {
		logged.reason = f.reason
	}
	writeJSON(w, f.status, problem{
		URL: targetOf(r), Type: f.exception,
		Message: f.message, Error: f.exception + ": " + f.message,
	})
}

// targetOf is the path and query of a request, as they were sent.
func targetOf(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		return r.RequestURI
	}
	return r.URL.RequestURI() // It was sent with scheme and host, as to a proxy.
}

// writeJSON answers with v, which must be something that json can encode.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := encode(v)
	if err != nil {
		panic(err) // a type of this package that has no JSON form
	}
	setHeaders(w)
	w.WriteHeader(status)
	_, _ = w.Write(body) // The caller may have gone.
}

// setHeaders sets the headers of every answer with a body. There is no ETag:
// RavenDB's clients keep what has one, and would hand out a range twice. For the
// same reason no cache between may keep an answer to a GET.
func setHeaders(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
}

// encode returns v as JSON. Nothing is escaped for HTML: an id is to be read as it is.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
