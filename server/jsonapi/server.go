// Package jsonapi is idnode's public API as JSON over HTTP: each method of the proto files that has
// one request and one answer, as the Connect protocol has them. A call goes through the handlers
// and interceptors of the gRPC server, so its answers, errors, rights and limits are the same. The
// package owns what belongs to the protocol, and decides nothing about ids.
package jsonapi

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/budget"
	"github.com/idnode/idnode/server/hostcheck"
	"github.com/idnode/idnode/server/service"
)

const (
	// maxBody bounds the body of a call, as it bounds those of all calls on the port. The
	// longest is a list of a series' 1,000 keys, of 40,000 bytes together, with their numbers.
	maxBody = 128 << 10
	// bodyCost is what a body holds for each of its bytes at worst, decoded and translated:
	// the items of a list may have three bytes each.
	bodyCost = 64
)

// Calls makes calls; grpcapi.Server does. Errors are gRPC statuses.
type Calls interface {
	// Unary makes a call by the full name of its method. What it holds is counted for
	// to, which may be nil, until encode returns.
	Unary(ctx context.Context, method string, to *budget.Connection, decode func(request any) error,
		encode func(answer proto.Message) ([]byte, error)) ([]byte, error)
	// Refuse records a call that is not made, and returns its error as Status does.
	Refuse(err error) error
	Status(err error) error
}

// API answers the calls. It is safe for concurrent use.
type API struct {
	calls     Calls
	checkHost func(name string) error
}

// New returns the API of a node. checkHost judges a host name that a foreign site may own; see package
// hostcheck.
func New(calls Calls, checkHost func(name string) error) *API { return &API{calls, checkHost} }

func services() []grpc.ServiceDesc {
	return []grpc.ServiceDesc{
		idnodev1.IdsService_ServiceDesc, idnodev1.SeriesService_ServiceDesc, idnodev1.SnowflakeService_ServiceDesc,
		idnodev1.ClusterService_ServiceDesc,
		idnodev1.AdminService_ServiceDesc,
	}
}

// instead says what to use in the place of the methods that are not offered.
var instead = map[string]string{
	idnodev1.IdsService_Exchange_FullMethodName:            "make its calls one by one, or over gRPC",
	idnodev1.IdsService_StreamServerSideIds_FullMethodName: "call Generate with a count, or use gRPC",
	idnodev1.AdminService_Backup_FullMethodName:            "use idnode backup, or gRPC",
}

// Handle adds all methods, each under its full name; handle is like http.ServeMux.Handle.
func (a *API) Handle(handle func(pattern string, handler http.Handler)) {
	for _, s := range services() {
		prefix := "/" + s.ServiceName + "/"
		for _, m := range s.Methods {
			handle(prefix+m.MethodName, a.handler(a.call(prefix+m.MethodName)))
		}
		for _, m := range s.Streams {
			name := prefix + m.StreamName
			handle(name, a.refusal(0, m.StreamName+" has streams, which JSON over HTTP has not: "+instead[name]))
		}
		handle(prefix, a.refusal(http.StatusNotFound, s.ServiceName+" has no such method"))
	}
}

// refusal refuses all calls. Status 0 is that of the code.
func (a *API) refusal(httpStatus int, message string) http.Handler {
	return a.handler(func(http.ResponseWriter, *http.Request) ([]byte, error) {
		return nil, &failure{httpStatus, status.Error(codes.Unimplemented, message)}
	})
}

// Answer answers a request that is refused before its handler has it, if it is one of this API.
func (a *API) Answer(w http.ResponseWriter, r *http.Request, err *apierror.Error) bool {
	for _, s := range services() {
		if strings.HasPrefix(r.URL.Path, "/"+s.ServiceName+"/") {
			a.Fail(w, err)
			return true
		}
	}
	return false
}

func (a *API) handler(do func(w http.ResponseWriter, r *http.Request) ([]byte, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := hostcheck.Check(r, a.checkHost)
		if err != nil {
			writeError(w, a.calls.Refuse(err))
			return
		}
		answer, err := do(w, r)
		if err != nil {
			writeError(w, err)
			return
		}
		Write(w, http.StatusOK, answer)
	})
}

func (a *API) call(method string) func(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return func(w http.ResponseWriter, r *http.Request) ([]byte, error) {
		if httpStatus, err := checkHeaders(w, r); err != nil {
			return nil, &failure{httpStatus, a.calls.Refuse(err)}
		}
		ctx, cancel, err := withTimeout(r)
		if err != nil {
			return nil, a.calls.Refuse(err)
		}
		defer cancel()
		to := heldFor(w)
		size := r.ContentLength
		if size < 0 || size > maxBody {
			size = maxBody
		}
		if !to.HoldLast(bodyCost * size) {
			return nil, a.calls.Refuse(apierror.ErrOverloaded)
		}
		defer to.Give(bodyCost * size)
		body, err := readBody(w, r)
		if err != nil {
			return nil, a.calls.Refuse(err)
		}
		read := func(request any) error {
			if err := decode(body, request.(proto.Message)); err != nil {
				return err
			}
			return setRequestID(request.(proto.Message), r.Header.Values(service.IdempotencyKeyHeader))
		}
		return a.calls.Unary(ctx, method, to, read, Encode)
	}
}

// Read reads the message that is a request's body, as a call does.
func (a *API) Read(w http.ResponseWriter, r *http.Request, m proto.Message) error {
	if httpStatus, err := checkHeaders(w, r); err != nil {
		return &failure{httpStatus, a.calls.Status(err)}
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	return decode(body, m)
}

// heldFor returns what is counted for the caller of a request; nil if nothing is.
func heldFor(w http.ResponseWriter) *budget.Connection {
	if counted, ok := w.(interface{ Held() *budget.Connection }); ok {
		return counted.Held()
	}
	return nil
}

// checkHeaders returns what is wrong with a request before its body is read, and the
// status of that; 0 is that of the code. The content type is part of the defence: a
// browser asks first before a foreign page sends it.
func checkHeaders(w http.ResponseWriter, r *http.Request) (int, error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed, invalid("", "the method must be POST")
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := params["charset"]; err != nil || kind != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		w.Header().Set("Accept-Post", "application/json")
		return http.StatusUnsupportedMediaType, invalid("", "the body must be application/json in UTF-8, and the header Content-Type must say so")
	}
	// As over gRPC: a few bytes may expand to the largest body.
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		w.Header().Set("Accept-Encoding", "identity")
		return http.StatusUnsupportedMediaType, invalid("", "compressed bodies are refused")
	}
	if version := r.Header.Get("Connect-Protocol-Version"); version != "" && version != "1" {
		return 0, invalid("", "the header Connect-Protocol-Version must be 1, or absent")
	}
	return 0, nil
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &apierror.Error{Code: apierror.CodeResourceExhausted, Reason: apierror.ReasonQuota, Message: "the body is too large"}
	case err != nil:
		return nil, invalid("", "the body could not be read to its end")
	}
	return body, nil
}

func invalid(field, message string) *apierror.Error {
	return &apierror.Error{Code: apierror.CodeInvalidArgument, Reason: apierror.ReasonInvalidRequest, Field: field, Message: message}
}

// fieldName finds the field at fault in a message of protojson.
var fieldName = regexp.MustCompile(`field "?([\pL\pN_.]{1,64})\b`)

// decode reads the JSON form of a message. A field that is not known is an error, which
// names it: it may be one that matters, misspelt.
func decode(body []byte, m proto.Message) error {
	err := protojson.Unmarshal(body, m)
	if err == nil {
		return nil
	}
	// It says where, and shows what is there, of any length.
	message := strings.TrimLeft(strings.TrimPrefix(strings.ToValidUTF8(err.Error(), "\uFFFD"), "proto:"), " \u00a0")
	field := ""
	if found := fieldName.FindStringSubmatch(message); found != nil {
		field = found[1]
	}
	if runes := []rune(message); len(runes) > maxMessage {
		message = string(runes[:maxMessage]) + "…"
	}
	return invalid(field, "the body is not the JSON of this call: "+message)
}

const maxMessage = 200

// setRequestID gives a request the id that the header Idempotency-Key has. Whoever sends one where none
// is taken would count on what is not so.
func setRequestID(m proto.Message, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	r := m.ProtoReflect()
	field := r.Descriptor().Fields().ByName("request_id")
	if field == nil {
		return &apierror.Error{
			Code: apierror.CodeInvalidArgument, Reason: apierror.ReasonInvalidRequestID, Field: service.IdempotencyKeyHeader,
			Message: "this call takes no request id",
		}
	}
	id := &idnodev1.RequestId{}
	if r.Has(field) {
		id = r.Get(field).Message().Interface().(*idnodev1.RequestId)
	}
	key, err := service.IdempotencyKey(keys, id.GetId())
	if err != nil {
		return err
	}
	id.Id = key
	r.Set(field, protoreflect.ValueOfMessage(id.ProtoReflect()))
	return nil
}

// Encode returns the JSON form of a message. Fields are there also if they are zero or
// empty, for programs that know nothing of the proto files.
func Encode(m proto.Message) ([]byte, error) {
	return protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
}
