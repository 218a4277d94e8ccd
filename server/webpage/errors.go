package webpage

import (
	"errors"
	"net/http"

	"github.com/idnode/idnode/server/service"
)

// problem is an error as the page gets it.
type problem struct {
	Status int `json:"-"`
	// Reason is one of the service's.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Field is the field at fault; empty if none is.
	Field string `json:"field,omitempty"`
}

// Error implements error.
func (p *problem) Error() string { return p.Reason + ": " + p.Message }

var statuses = map[service.Code]int{
	service.InvalidArgument:    http.StatusBadRequest,
	service.Unavailable:        http.StatusServiceUnavailable,
	service.Aborted:            http.StatusConflict,
	service.ResourceExhausted:  http.StatusTooManyRequests,
	service.OutOfRange:         http.StatusConflict,
	service.AlreadyExists:      http.StatusConflict,
	service.FailedPrecondition: http.StatusPreconditionFailed,
	service.NotFound:           http.StatusNotFound,
	service.PermissionDenied:   http.StatusForbidden,
	service.DataLoss:           http.StatusInternalServerError,
	service.Internal:           http.StatusInternalServerError,
}

// problemOf translates err. The text of what is not known here stays unseen.
func problemOf(err error) *problem {
	var known *problem
	if errors.As(err, &known) {
		return known
	}
	var e *service.Error
	if !errors.As(err, &e) {
		e = &service.Error{Code: service.Internal, Reason: service.ReasonInternal, Message: "internal error; the node's log says more"}
	}
	status, ok := statuses[e.Code]
	if !ok {
		status = http.StatusInternalServerError
	}
	return &problem{Status: status, Reason: e.Reason, Message: e.Message, Field: e.Field}
}

func writeError(w http.ResponseWriter, err error) {
	p := problemOf(err)
	writeJSON(w, p.Status, p)
}
