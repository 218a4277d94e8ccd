package jsonapi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
)

// failure is a gRPC status that has an HTTP status of its own, unless that is 0.
type failure struct {
	httpStatus int
	err        error
}

func (f *failure) Error() string { return f.err.Error() }

// Unwrap returns the gRPC status.
func (f *failure) Unwrap() error { return f.err }

// code is a code as the Connect protocol has it.
type code struct {
	name   string
	status int
}

var names = map[codes.Code]code{
	codes.Canceled:           {"canceled", 499},
	codes.Unknown:            {"unknown", http.StatusInternalServerError},
	codes.InvalidArgument:    {"invalid_argument", http.StatusBadRequest},
	codes.DeadlineExceeded:   {"deadline_exceeded", http.StatusGatewayTimeout},
	codes.NotFound:           {"not_found", http.StatusNotFound},
	codes.AlreadyExists:      {"already_exists", http.StatusConflict},
	codes.PermissionDenied:   {"permission_denied", http.StatusForbidden},
	codes.ResourceExhausted:  {"resource_exhausted", http.StatusTooManyRequests},
	codes.FailedPrecondition: {"failed_precondition", http.StatusBadRequest},
	codes.Aborted:            {"aborted", http.StatusConflict},
	codes.OutOfRange:         {"out_of_range", http.StatusBadRequest},
	codes.Unimplemented:      {"unimplemented", http.StatusNotImplemented},
	codes.Internal:           {"internal", http.StatusInternalServerError},
	codes.Unavailable:        {"unavailable", http.StatusServiceUnavailable},
	codes.DataLoss:           {"data_loss", http.StatusInternalServerError},
	codes.Unauthenticated:    {"unauthenticated", http.StatusUnauthorized},
}

func codeNamed(c codes.Code) code {
	if as, known := names[c]; known {
		return as
	}
	return names[codes.Unknown]
}

type problem struct {
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Details []detail `json:"details,omitempty"`
}

type detail struct {
	Type string `json:"type"`
	// Value is the message, in base64 without padding.
	Value string `json:"value"`
	// Debug is the message as JSON.
	Debug json.RawMessage `json:"debug,omitempty"`
}

// Fail answers with the error of a use case, or of Read.
func (a *API) Fail(w http.ResponseWriter, err error) {
	if own := (*failure)(nil); !errors.As(err, &own) {
		err = a.calls.Status(err)
	}
	writeError(w, err)
}

func writeError(w http.ResponseWriter, err error) {
	var own *failure
	if errors.As(err, &own) {
		err = own.err
	}
	st := status.Convert(err)
	as := codeNamed(st.Code())
	if own != nil && own.httpStatus != 0 {
		as.status = own.httpStatus
	}
	body := problem{Code: as.name, Message: st.Message()}
	for _, any := range st.Proto().GetDetails() {
		d := detail{Type: string(any.MessageName()), Value: base64.RawStdEncoding.EncodeToString(any.GetValue())}
		if m, err := any.UnmarshalNew(); err == nil {
			d.Debug, _ = protojson.Marshal(m)
			tell(w, m)
		}
		body.Details = append(body.Details, d)
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		panic(err) // A type of this package that has no JSON form.
	}
	Write(w, as.status, encoded)
}

// tell names the reason of an error to what writes the log of requests.
func tell(w http.ResponseWriter, detail any) {
	info, ok := detail.(*errdetails.ErrorInfo)
	if logged, can := w.(interface{ Failed(reason string) }); ok && can {
		logged.Failed(info.GetReason())
	}
}

// Write answers with JSON. No cache between may keep it.
func Write(w http.ResponseWriter, httpStatus int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(httpStatus)
	_, _ = w.Write(body) // The caller may have gone.
}
