package jsonapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/server/budget"
	"github.com/idnode/idnode/test/compat"
)

// full reads a request and answers with every field set.
type full struct {
	t       *testing.T
	turn    int
	request proto.Message
	fail    error
}

// Unary implements Calls.
func (f *full) Unary(_ context.Context, method string, _ *budget.Connection, decode func(any) error,
	encode func(proto.Message) ([]byte, error),
) ([]byte, error) {
	desc := methodOf(f.t, method)
	f.request = newMessage(f.t, desc.Input())
	if err := decode(f.request); err != nil {
		f.t.Errorf("%q would be broken: %s does not read the release's request: %v", compat.Wire, method, err)
	}
	answer := newMessage(f.t, desc.Output())
	compat.Fill(f.t, answer.ProtoReflect(), f.turn)
	if f.fail != nil {
		return nil, f.fail
	}
	return encode(answer)
}

func (f *full) Refuse(err error) error { return err }
func (f *full) Status(err error) error { return err }

// TestJSONKept sends the release's requests, and compares what is read of them, and answers and errors.
func TestJSONKept(t *testing.T) {
	calls, mux := &full{t: t}, http.NewServeMux()
	New(calls, func(string) error { return nil }).Handle(mux.Handle)
	send := func(method, body string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(http.MethodPost, "https://a"+method, strings.NewReader(body)), httptest.NewRecorder()
		r.Header.Set("Content-Type", "application/json")
		mux.ServeHTTP(w, r)
		return w
	}
	var now, answers []string
	for method := range requests {
		for calls.turn = range compat.Turns {
			request := newMessage(t, methodOf(t, method).Input())
			compat.Fill(t, request.ProtoReflect(), calls.turn)
			now = append(now, method+" "+encoded(t, request))
			answers = append(answers, compat.JSON(t, method, send(method, "{}").Body.String(), false)...)
		}
	}
	slices.Sort(now)
	now = slices.Compact(now)
	for line := range strings.Lines(string(compat.File(t, compat.Wire, "json/requests", []byte(strings.Join(now, "\n")+"\n")))) {
		method, request, _ := strings.Cut(line, " ")
		if send(method, request); calls.request == nil {
			t.Fatalf("%q would be broken: there is no %s", compat.Wire, method)
		}
		read := compat.JSON(t, method, encoded(t, calls.request), false)
		for _, field := range compat.JSON(t, method, request, false) {
			if !slices.Contains(read, field) {
				t.Errorf("%q would be broken: a request's %s is read as something else", compat.Wire, field)
			}
		}
		calls.request = nil
	}
	for code := range names {
		s, err := status.New(code, "words").WithDetails(filled(t, &errdetails.ErrorInfo{}), filled(t, &errdetails.BadRequest{}),
			&errdetails.RetryInfo{RetryDelay: durationpb.New(1)})
		if err != nil {
			t.Fatal(err)
		}
		calls.fail = s.Err()
		w := send(ids+"Claim", "{}")
		answers = append(answers, compat.JSON(t, fmt.Sprintf("error %s %d", code, w.Code), w.Body.String(), false)...)
	}
	compat.Names(t, compat.Wire, "json/answers", answers)
}

func filled[M protoadapt.MessageV2](t *testing.T, m M) protoadapt.MessageV1 {
	compat.Fill(t, m.ProtoReflect(), 0)
	return protoadapt.MessageV1Of(m)
}

// encoded is a message as JSON without the spaces, which vary.
func encoded(t *testing.T, m proto.Message) string {
	t.Helper()
	text, err := Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		t.Fatal(err)
	}
	return line.String()
}
