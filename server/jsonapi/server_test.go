package jsonapi

import (
	"context"
	"encoding/base64"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/fsmtest"
)

const (
	ids     = "/idnode.v1.IdsService/"
	cluster = "/idnode.v1.ClusterService/"
	admin   = "/idnode.v1.AdminService/"
	series  = "/idnode.v1.SeriesService/"
	workers = "/idnode.v1.SnowflakeService/"
)

// requests has one of each method that has no streams.
var requests = map[string]string{
	ids + "Generate":       `{"template":"users|","count":"2"}`,
	ids + "NextIdentity":   `{"name":"users"}`,
	ids + "SeedIdentity":   `{"name":"users","value":"9007199254740993"}`,
	ids + "GetIdentity":    `{"name":"users"}`,
	ids + "ListIdentities": `{}`,
	ids + "DeleteIdentity": `{"name":"users"}`,
	ids + "NextRange":      `{"tag":"users"}`,
	ids + "ReturnRange":    `{"tag":"users","low":"1","high":"32","last":"0","withoutToken":true}`,
	ids + "GetHiLo":        `{"tag":"users"}`,
	ids + "WhoHolds":       `{"tag":"users","number":"1"}`,
	ids + "SetHiLo":        `{"tag":"users","max":"99"}`,
	ids + "ListHiLo":       `{"pageSize":3}`,
	ids + "ListReserves":   `{}`,
	ids + "Claim":          `{"id":"users/ayende"}`,
	ids + "Release":        `{"id":"users/ayende"}`,
	ids + "ListClaims":     `{}`,

	series + "ReconcileNumbers": `{"series":"invoices","scope":["2026"],"numbers":[{"number":"1","key":"orders/1-A"},{"number":"2"}]}`,
	series + "DefineSeries":     `{"name":"invoices","definition":{"format":"INV-{year}-{number:6}","resetBy":"SERIES_RESET_YEAR"}}`,
	series + "DeleteSeries":     `{"name":"invoices","expectedVersion":"1"}`,
	series + "GetSeries":        `{"name":"invoices"}`,
	series + "ListSeries":       `{}`,
	series + "TakeNumbers":      `{"series":"invoices","keys":["orders/1-A"]}`,
	series + "ConfirmNumbers":   `{"series":"invoices","keys":[{"key":"orders/1-A","number":"1"}]}`,
	series + "VoidNumbers":      `{"series":"invoices","keys":[{"key":"orders/1-A"}],"reason":"torn"}`,
	series + "ReleaseNumbers":   `{"series":"invoices","keys":[{"key":"orders/1-A"}]}`,
	series + "ReportSeries":     `{"series":"invoices"}`,
	series + "ReportPeriod":     `{"series":"invoices","from":"2026-10-01"}`,
	series + "ListNumbers":      `{"series":"invoices","scope":["2026"]}`,
	series + "FormatNumber":     `{"series":"invoices","values":{"branch":"B"},"number":"3"}`,
	series + "ParseNumber":      `{"format":"W{number:4}","text":"W0003"}`,
	series + "WhoHas":           `{"series":"invoices","key":"orders/1-A"}`,
	series + "VerifySeries":     `{"series":"invoices"}`,
	series + "AllotNumbers":     `{"series":"invoices","scope":["2026"],"allotment":{"from":"900","to":"950"}}`,
	series + "CloseScope":       `{"series":"invoices","scope":["2026"]}`,
	series + "ResumeSeries":     `{"series":"invoices"}`,

	workers + "DefinePool":     `{"name":"orders","layoutName":"javascript","window":"600s"}`,
	workers + "ListPools":      `{}`,
	workers + "AcquireWorker":  `{"pool":"orders","holder":"web-1"}`,
	workers + "RenewWorker":    `{"pool":"orders","worker":1,"token":"0000000000000000"}`,
	workers + "ReleaseWorker":  `{"pool":"orders","worker":1,"token":"0000000000000000","next":"0"}`,
	workers + "EvictWorker":    `{"pool":"orders","worker":1}`,
	workers + "ListWorkers":    `{"pool":"orders"}`,
	workers + "NextSnowflakes": `{"pool":"orders","count":2}`,

	cluster + "GetStatus":          `{}`,
	cluster + "ListMembers":        `{}`,
	cluster + "CreateJoinToken":    `{"tag":"B","validFor":"60s"}`,
	cluster + "RemoveMember":       `{"tag":"A"}`,
	cluster + "SetWatcher":         `{"tag":"A","watcher":false}`,
	cluster + "TransferLeadership": `{}`,
	cluster + "ListDatabases":      `{}`,
	cluster + "DeleteDatabase":     `{"database":"trial"}`,
	cluster + "ListSettings":       `{}`,
	cluster + "UpdateSetting":      `{"key":"max-databases","value":"70"}`,
	cluster + "GetRoles":           `{}`,
	cluster + "SetRoles":           `{"table":{"roles":[]}}`,

	admin + "MergeCounters": `{"databases":[{"identities":[{"name":"users","value":"5"}]}]}`,
	admin + "MergeCluster":  `{"floor":"5"}`,
	admin + "ImportSeries":  `{"record":"CgA="}`,
}

// forAll are the methods that need no right.
var forAll = []string{cluster + "GetStatus", cluster + "ListMembers", cluster + "ListSettings"}

// TestEachMethodAsOverGRPC: a method answers over HTTP as it does over gRPC, with every
// right and with none; so do errors, with all their details.
func TestEachMethodAsOverGRPC(t *testing.T) {
	for method, body := range requests {
		for _, caller := range []string{"dns:ops", "dns:stranger"} {
			over := newWorld(t)
			over.guard()
			over.set(func(w *world) { w.caller = caller })
			want, wantErr := overGRPC(t, over, method, body)
			w := newWorld(t)
			w.guard()
			w.set(func(w *world) { w.caller = caller })
			got := w.post(method, body)
			if !slices.Equal(w.counted, over.counted) {
				t.Errorf("%s by %s counts as %q, over gRPC as %q", method, caller, w.counted, over.counted)
			}
			if caller == "dns:stranger" && !slices.Contains(forAll, method) && got.reason() != "PERMISSION_DENIED" {
				t.Errorf("%s by a stranger: %s", method, got.body)
			}
			if wantErr != nil {
				sameError(t, method, got, status.Convert(wantErr))
				continue
			}
			answer := want.ProtoReflect().New().Interface()
			if err := protojson.Unmarshal([]byte(got.body), answer); err != nil || got.status != http.StatusOK {
				t.Errorf("%s: %d %v: %s", method, got.status, err, got.body)
			}
			if method == cluster+"CreateJoinToken" || method == ids+"NextRange" {
				continue // A token is drawn.
			}
			if !proto.Equal(answer, want) {
				t.Errorf("%s by %s: %s, over gRPC %s", method, caller, answer, want)
			}
		}
	}
}

// overGRPC makes a call over gRPC.
func overGRPC(t *testing.T, w *world, method, body string) (proto.Message, error) {
	t.Helper()
	desc := methodOf(t, method)
	request, answer := newMessage(t, desc.Input()), newMessage(t, desc.Output())
	if err := protojson.Unmarshal([]byte(body), request); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return answer, w.dial().Invoke(ctx, method, request, answer)
}

func newMessage(t *testing.T, m protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(m.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return kind.New().Interface()
}

func methodOf(t *testing.T, method string) protoreflect.MethodDescriptor {
	t.Helper()
	desc, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(method[1:], "/", ".")))
	if err != nil {
		t.Fatal(err)
	}
	return desc.(protoreflect.MethodDescriptor)
}

// sameError compares an error with a gRPC status: code, words and details, of which the
// bytes are the same too.
func sameError(t *testing.T, method string, got httpAnswer, want *status.Status) {
	t.Helper()
	if as := names[want.Code()]; got.Code != as.name || got.status != as.status || got.Message != want.Message() ||
		len(got.Details) != len(want.Details()) {
		t.Errorf("%s: %d %s, over gRPC %s", method, got.status, got.body, want)
		return
	}
	for i, d := range want.Proto().GetDetails() {
		if value, err := base64.RawStdEncoding.DecodeString(got.Details[i].Value); err != nil || string(value) != string(d.GetValue()) ||
			got.Details[i].Type != string(d.MessageName()) {
			t.Errorf("%s: detail %d is %v: %v", method, i, got.Details[i], err)
		}
	}
	if info, ok := want.Details()[0].(*errdetails.ErrorInfo); !ok || got.reason() != info.GetReason() {
		t.Errorf("%s: the reason is %q: %s", method, got.reason(), got.body)
	}
}

// TestEveryMethodIsHere: each method of the proto files has a request above, or has
// streams and says in words what to use in its place.
func TestEveryMethodIsHere(t *testing.T) {
	w := newWorld(t)
	before := w.Index()
	for _, s := range services() {
		service := methodOf(t, "/"+s.ServiceName+"/"+s.Methods[0].MethodName).Parent().(protoreflect.ServiceDescriptor)
		for i := range service.Methods().Len() {
			m := service.Methods().Get(i)
			name := "/" + s.ServiceName + "/" + string(m.Name())
			streams := m.IsStreamingClient() || m.IsStreamingServer()
			if _, here := requests[name]; here == streams {
				t.Errorf("%s: streams %v, and a request %v", name, streams, here)
			}
			if !streams {
				continue
			}
			if a := w.post(name, `{}`); instead[name] == "" || a.status != http.StatusNotImplemented || a.Code != "unimplemented" || !strings.Contains(a.Message, instead[name]) {
				t.Errorf("%s: %d %s", name, a.status, a.body)
			}
		}
		if a := w.post("/"+s.ServiceName+"/Nothing", `{}`); a.status != http.StatusNotFound || a.Code != "unimplemented" {
			t.Errorf("no method: %d %s", a.status, a.body)
		}
	}
	if w.Index() != before {
		t.Error("something was proposed")
	}
}

// TestBadRequests change nothing, and say what is wrong.
func TestBadRequests(t *testing.T) {
	w := newWorld(t)
	before := w.Index()
	const invalid = "INVALID_REQUEST"
	for name, tt := range map[string]struct {
		body    string
		headers []string
		status  int
		reason  string
		field   string
	}{
		"an unknown field":          {`{"template":"a|","cuont":3}`, nil, 400, invalid, "cuont"},
		"one within":                {`{"template":"a|","requestId":{"id":"a","ids":3}}`, nil, 400, invalid, "ids"},
		"a field twice":             {`{"template":"a|","template":"b|"}`, nil, 400, invalid, "template"},
		"a number as text":          {`{"template":"a|","count":"many"}`, nil, 400, invalid, "count"},
		"a fraction":                {`{"template":"a|","count":1.5}`, nil, 400, invalid, "count"},
		"a number above 2^63":       {`{"template":"a|","count":"9223372036854775808"}`, nil, 400, invalid, "count"},
		"a list":                    {`[{"template":"a|"}]`, nil, 400, invalid, ""},
		"two requests":              {`{"template":"a|"}{"template":"a|"}`, nil, 400, invalid, ""},
		"half of one":               {`{"template":"a|"`, nil, 400, invalid, ""},
		"nothing":                   {``, nil, 400, invalid, ""},
		"null":                      {`null`, nil, 400, invalid, ""},
		"bytes that are no UTF-8":   {"{\"template\":\"\xff|\"}", nil, 400, invalid, ""},
		"nested too deep":           {strings.Repeat(`{"requestId":`, 5000), nil, 400, invalid, "requestId"},
		"what the service refuses":  {`{"template":"a|","count":-1}`, nil, 400, "INVALID_COUNT", "count"},
		"a body that is too large":  {`{"template":"` + strings.Repeat("a", maxBody) + `|"}`, nil, 429, "QUOTA", ""},
		"one of unknown length":     {`{"template":"` + strings.Repeat("a", maxBody) + `|"}`, []string{"Transfer-Encoding", "chunked"}, 429, "QUOTA", ""},
		"a form":                    {`{"template":"a|"}`, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, invalid, ""},
		"plain text":                {`{"template":"a|"}`, []string{"Content-Type", "text/plain"}, 415, invalid, ""},
		"another charset":           {`{"template":"a|"}`, []string{"Content-Type", "application/json; charset=latin1"}, 415, invalid, ""},
		"a proto message":           {"\x12\x02a|", []string{"Content-Type", "application/proto"}, 415, invalid, ""},
		"a compressed body":         {`{"template":"a|"}`, []string{"Content-Encoding", "gzip"}, 415, invalid, ""},
		"another protocol":          {`{"template":"a|"}`, []string{"Connect-Protocol-Version", "2"}, 400, invalid, ""},
		"a timeout that is none":    {`{"template":"a|"}`, []string{"Connect-Timeout-Ms", "1s"}, 400, "INVALID_TIMEOUT", "timeout"},
		"one of no time":            {`{"template":"a|"}`, []string{"Connect-Timeout-Ms", "0"}, 400, "INVALID_TIMEOUT", "timeout"},
		"gRPC's of no time":         {`{"template":"a|"}`, []string{"Grpc-Timeout", "0m"}, 400, "INVALID_TIMEOUT", "timeout"},
		"one below zero":            {`{"template":"a|"}`, []string{"Connect-Timeout-Ms", "-1"}, 400, "INVALID_TIMEOUT", "timeout"},
		"one with too many digits":  {`{"template":"a|"}`, []string{"Connect-Timeout-Ms", "12345678901"}, 400, "INVALID_TIMEOUT", "timeout"},
		"gRPC's without a unit":     {`{"template":"a|"}`, []string{"Grpc-Timeout", "100"}, 400, "INVALID_TIMEOUT", "timeout"},
		"gRPC's without a number":   {`{"template":"a|"}`, []string{"Grpc-Timeout", "S"}, 400, "INVALID_TIMEOUT", "timeout"},
		"gRPC's with too many":      {`{"template":"a|"}`, []string{"Grpc-Timeout", "123456789S"}, 400, "INVALID_TIMEOUT", "timeout"},
		"a page of another site":    {`{"template":"a|"}`, []string{"Sec-Fetch-Site", "cross-site"}, 403, invalid, ""},
		"one of an old browser":     {`{"template":"a|"}`, []string{"Origin", "http://evil.example"}, 403, invalid, ""},
		"a name that leads here":    {`{"template":"a|"}`, []string{"Host", "evil.example:7402", secured, ""}, 403, invalid, ""},
		"such a name, with itself":  {`{"template":"a|"}`, []string{"Host", "evil.example", "Origin", "http://evil.example", secured, ""}, 403, invalid, ""},
		"a name, and another type":  {`{"template":"a|"}`, []string{"Host", "evil.example", "Content-Type", "text/plain", secured, ""}, 403, invalid, ""},
		"an empty key":              {`{"template":"a|"}`, []string{"Idempotency-Key", ""}, 400, "INVALID_REQUEST_ID", "Idempotency-Key"},
		"a key that is too long":    {`{"template":"a|"}`, []string{"Idempotency-Key", strings.Repeat("k", 65)}, 400, "INVALID_REQUEST_ID", "request_id"},
		"a key and a request id":    {`{"template":"a|","requestId":{"id":"a"}}`, []string{"Idempotency-Key", "b"}, 400, "INVALID_REQUEST_ID", "Idempotency-Key"},
		"a key for a GUID":          {`{"template":""}`, []string{"Idempotency-Key", "b"}, 400, "INVALID_REQUEST_ID", "request_id"},
		"text with no end and more": {`{"template":` + strings.Repeat("9", 60_000) + `}`, nil, 400, invalid, "template"},
	} {
		a := w.post(ids+"Generate", tt.body, tt.headers...)
		if a.status != tt.status || a.reason() != tt.reason || a.field() != tt.field || len(a.Message) > 1000 {
			t.Errorf("%s: %d %s, want %d %s %s", name, a.status, a.body, tt.status, tt.reason, tt.field)
		}
	}
	for _, verb := range []string{http.MethodGet, http.MethodPut, http.MethodHead, http.MethodOptions, http.MethodDelete} {
		a := w.send(verb, ids+"Generate", `{"template":"a|"}`)
		if a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != http.MethodPost ||
			len(a.header["Access-Control-Allow-Origin"]) > 0 {
			t.Errorf("%s: %d %v", verb, a.status, a.header)
		}
	}
	if w.Index() != before {
		t.Errorf("%d operations were proposed", w.Index()-before)
	}
}

// TestNumbersAreText: whole numbers of 64 bits come as text, and are taken as text or as
// numbers. Fields that are zero are there.
func TestNumbersAreText(t *testing.T) {
	w := newWorld(t)
	for _, value := range []string{`"9007199254740993"`, `9007199254740993`} {
		a := w.post(ids+"SeedIdentity", `{"name":"users","value":`+value+`,"force":true}`)
		if a.status != http.StatusOK || !strings.Contains(a.body, `"9007199254740993"`) {
			t.Errorf("%s: %d %s", value, a.status, a.body)
		}
	}
	if a := w.post(ids+"ListIdentities", `{"database":"empty"}`); !strings.Contains(strings.ReplaceAll(a.body, " ", ""), `"identities":[],"nextPageToken":""`) {
		t.Errorf("an empty list: %s", a.body)
	}
}

// TestTimeouts end a call as they do over gRPC.
func TestTimeouts(t *testing.T) {
	w := newWorld(t)
	for _, header := range [][]string{
		{"Connect-Timeout-Ms", "20"},
		{"Grpc-Timeout", "20m"},
		{"Connect-Timeout-Ms", "20", "Grpc-Timeout", "1H"},
	} {
		w.Set(func(f *fsmtest.Faults) { f.Gate = make(chan struct{}) })
		if a := w.post(ids+"SeedIdentity", `{"name":"users","value":"5","force":true}`, header...); a.reason() != "OUTCOME_UNKNOWN" {
			t.Errorf("%v: %d %s", header, a.status, a.body)
		}
		w.Set(func(f *fsmtest.Faults) { f.Gate = nil })
	}
	for _, header := range [][]string{{"Connect-Timeout-Ms", "9999999999"}, {"Grpc-Timeout", "99999999H"}, {"Grpc-Timeout", "99999999u"}} {
		if a := w.post(ids+"SeedIdentity", `{"name":"users","value":"5","force":true}`, header...); a.status != http.StatusOK {
			t.Errorf("%v: %d %s", header, a.status, a.body)
		}
	}
}

// TestPanic: a call that panics ends alone, and its caller learns nothing of it.
func TestPanic(t *testing.T) {
	w := newWorld(t)
	w.Set(func(f *fsmtest.Faults) { f.Boom = true })
	if a := w.post(ids+"NextIdentity", `{"name":"users"}`); a.status != 500 || a.Code != "internal" || a.reason() != "INTERNAL" || strings.Contains(a.body, "boom") {
		t.Errorf("%d %s", a.status, a.body)
	}
	w.Set(func(f *fsmtest.Faults) { f.Boom = false })
	if a := w.post(ids+"NextIdentity", `{"name":"users"}`); a.status != http.StatusOK {
		t.Errorf("after it: %d %s", a.status, a.body)
	}
}

// TestRequestIDsOverBothDoors: a request id counts once, whatever door a retry takes.
func TestRequestIDsOverBothDoors(t *testing.T) {
	w := newWorld(t)
	const body = `{"name":"users","requestId":{"id":"r1"}}`
	first := w.post(ids+"NextIdentity", body)
	again, err := overGRPC(t, w, ids+"NextIdentity", body)
	if err != nil {
		t.Fatal(err)
	}
	var got idnodev1.NextIdentityResponse
	if err := protojson.Unmarshal([]byte(first.body), &got); err != nil || !proto.Equal(&got, again) {
		t.Errorf("first %s, then %s: %v", first.body, again, err)
	}
}

// TestIdempotencyKeys: the header is the request id of each call that takes one, with the field and without;
// where none is taken, nothing happens.
func TestIdempotencyKeys(t *testing.T) {
	w := newWorld(t)
	field := w.post(ids+"NextIdentity", `{"name":"users","requestId":{"id":"r1"}}`)
	for _, body := range []string{`{"name":"users"}`, `{"name":"users","requestId":{"id":"r1"}}`} {
		for _, key := range []string{"r1", `"r1"`} {
			if got := w.post(ids+"NextIdentity", body, "Idempotency-Key", key); got.body != field.body {
				t.Errorf("%s with the key %s: %s, want %s", body, key, got.body, field.body)
			}
		}
	}
	if a := w.post(ids+"NextIdentity", `{"name":"others"}`, "Idempotency-Key", "r1"); a.reason() != "REQUEST_ID_REUSED" {
		t.Errorf("for another request: %s", a.body)
	}
	before := w.Index()
	for _, s := range services() {
		for _, m := range s.Methods {
			method := "/" + s.ServiceName + "/" + m.MethodName
			found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(s.ServiceName + "." + m.MethodName))
			if err != nil {
				t.Fatal(err)
			}
			if found.(protoreflect.MethodDescriptor).Input().Fields().ByName("request_id") != nil {
				continue
			}
			if a := w.post(method, `{}`, "Idempotency-Key", "r2"); a.reason() != "INVALID_REQUEST_ID" || a.field() != "Idempotency-Key" {
				t.Errorf("%s takes no request id: %d %s", method, a.status, a.body)
			}
		}
	}
	if w.Index() != before {
		t.Errorf("%d operations were proposed", w.Index()-before)
	}
}

// TestNoRoomForACall: what a call holds is counted for its caller before it is made: its
// body, and a large answer.
func TestNoRoomForACall(t *testing.T) {
	w := newWorld(t)
	others := w.budget.Open("others")
	defer others.Close()
	if !others.Hold(15 << 20 / 2) {
		t.Fatal("no room for the others")
	}
	shop := w.budget.Open("shop")
	defer shop.Close()
	const rest = 1 << 20
	held := (16<<20-15<<20/2)/2 - int64(rest)
	if !shop.Hold(held) {
		t.Fatal("no room for the caller")
	}
	before := w.Index()
	if a := w.post(ids+"ListIdentities", `{"pageSize":1000}`); a.status != 429 || a.reason() != "OVERLOADED" {
		t.Errorf("a list of up to 2 MB where there is room for 1: %d %s", a.status, a.body)
	}
	if a := w.post(ids+"NextIdentity", `{"name":"users"}`); a.status != http.StatusOK {
		t.Errorf("a small call: %d %s", a.status, a.body)
	}
	shop.Give(held)
	others.Give(15 << 20 / 2)
	if !shop.Hold(8<<20) || !shop.HoldLast(1) {
		t.Fatal("the caller cannot be filled")
	}
	shop.HoldLast(2 << 20)
	if a := w.post(cluster+"GetStatus", `{}`); a.status != 429 || a.Code != "resource_exhausted" || a.reason() != "OVERLOADED" {
		t.Errorf("of a caller that is full: %d %s", a.status, a.body)
	}
	shop.Give(8<<20 + 1 + 2<<20)
	if w.Index() != before+1 {
		t.Errorf("%d operations were proposed, want 1", w.Index()-before)
	}
}

// TestABodyOfManyParts: what is counted of a body is what it holds at worst when it is
// decoded: nothing but items of a list, of three bytes each.
func TestABodyOfManyParts(t *testing.T) {
	const items = maxBody / 3
	body := []byte(`{"tags":[` + strings.Repeat("{},", items-10) + "{}]}")
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, requests := heap(), make([]idnodev1.MergeClusterRequest, 10)
	for i := range requests {
		if err := decode(body, &requests[i]); err != nil {
			t.Fatal(err)
		}
	}
	if held := int64(heap()-before) / int64(len(requests)*len(body)); held >= bodyCost {
		t.Errorf("a byte holds %d, and counts for %d", held, bodyCost)
	}
	runtime.KeepAlive(requests)
}

// TestRequestsAreLogged: with method, status and reason, in one line, without the body.
func TestRequestsAreLogged(t *testing.T) {
	w := newWorld(t)
	w.post(ids+"GetIdentity", `{"name":"secret"}`)
	if got := w.log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "path="+ids+"GetIdentity status=404") ||
		!strings.Contains(got, "reason=IDENTITY_NOT_FOUND") || strings.Contains(got, "secret") {
		t.Errorf("%s", got)
	}
}

// FuzzBody: no body makes a fault of the node, and one that is refused changes nothing.
func FuzzBody(f *testing.F) {
	methods := make([]string, 0, len(requests))
	for method := range requests {
		methods = append(methods, method)
	}
	slices.Sort(methods)
	for i, method := range methods {
		f.Add(i, requests[method])
	}
	f.Add(0, `{"template":"a|","x":[[[{`)
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, i int, body string) {
		w.t = t
		method := methods[uint(i)%uint(len(methods))]
		_, before := w.State.Hash()
		a := w.post(method, body)
		if a.status == http.StatusOK {
			return
		}
		if a.reason() == "" || a.reason() == "INTERNAL" || a.Code == "" {
			t.Errorf("%s of %q: %d %s", method, body, a.status, a.body)
		}
		if _, after := w.State.Hash(); a.reason() == "INVALID_REQUEST" && after != before {
			t.Errorf("%s of %q was refused, and changed the state", method, body)
		}
	})
}
