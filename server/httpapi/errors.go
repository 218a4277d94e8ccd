package httpapi

import (
	"net/http"
	"strings"

	"github.com/idnode/idnode/server/service"
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

// failure is an error as HTTP shows it.
type failure struct {
	status    int
	exception string
	message   string
	// reason is for the log; empty where the service has no part in it.
	reason string
}

// failureOf translates err. Whatever is not a *service.Error becomes a 500, its
// text unseen.
//
// Invariant: clients take 408, 502, 503 and 504 as "this node failed" and send
// the same request to the next node. So these are only for what certainly did
// not happen, or may happen twice.
func failureOf(err error) failure {
	e := service.ErrorOf(err)
	f := failure{message: e.Reason + ": " + e.Message, reason: e.Reason}
	f.status, f.exception = statusOf(e)
	return f
}

func statusOf(e *service.Error) (status int, exception string) {
	switch e.Code {
	case service.InvalidArgument:
		return http.StatusBadRequest, argumentException
	case service.Unavailable:
		if e.Reason == service.ReasonOutcomeUnknown {
			// The service says Unavailable only where the same call again is safe.
			return http.StatusServiceUnavailable, timeoutException
		}
		return http.StatusServiceUnavailable, noLeaderException
	case service.Aborted:
		if e.Reason == service.ReasonOutcomeUnknown {
			return http.StatusInternalServerError, timeoutException
		}
		return http.StatusConflict, concurrencyException
	case service.ResourceExhausted:
		if e.Reason == service.ReasonQuota || e.Reason == service.ReasonRateLimited {
			// A limit of the cluster: the next node would say the same. A limit of the
			// caller must not be multiplied by the number of nodes.
			return http.StatusTooManyRequests, operationException
		}
		return http.StatusServiceUnavailable, ravenException
	case service.OutOfRange:
		return http.StatusBadRequest, overflowException
	case service.AlreadyExists:
		return http.StatusConflict, concurrencyException
	case service.FailedPrecondition:
		return http.StatusPreconditionFailed, operationException
	case service.NotFound:
		return http.StatusNotFound, noDocumentException
	case service.PermissionDenied:
		return http.StatusForbidden, authorizationException
	case service.DataLoss:
		return http.StatusInternalServerError, invalidDataException
	default:
		return http.StatusInternalServerError, ravenException
	}
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
