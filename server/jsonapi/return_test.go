package jsonapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
)

// TestAForgedReturnTakesNothingBack: without its token a range comes back from its holder
// alone, over each API.
func TestAForgedReturnTakesNothingBack(t *testing.T) {
	w := newWorld(t)
	ids := idnodev1.NewIdsServiceClient(w.dial())
	overGRPC := func(tag, id string) {
		req := &idnodev1.ReturnRangeRequest{Tag: tag, Low: 1, High: 32, Last: proto.Int64(7), WithoutToken: true}
		if id != "" {
			req.RequestId = &idnodev1.RequestId{Id: id}
		}
		if _, err := ids.ReturnRange(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	for name, returned := range map[string]func(tag string){
		"json": func(tag string) {
			w.post("/idnode.v1.IdsService/ReturnRange", fmt.Sprintf(`{"tag":%q,"low":1,"high":32,"last":7,"withoutToken":true}`, tag))
		},
		"grpc":  func(tag string) { overGRPC(tag, "") },
		"keyed": func(tag string) { overGRPC(tag, "r-"+tag) },
		"raven": func(tag string) {
			r, err := http.NewRequest(http.MethodPut, w.url+"/databases/default/hilo/return?end=32&last=7&tag="+tag, strings.NewReader(""))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set(secured, "yes")
			res, err := w.client.Do(r)
			if err != nil || res.Body.Close() != nil || res.StatusCode != http.StatusNoContent {
				t.Fatalf("%v, %v", res, err)
			}
		},
	} {
		for i, tt := range []struct {
			holder, caller string
			stands         int64
		}{
			{"dns:shop", "dns:thief", 32},
			{"dns:shop", "", 32},
			{"dns:shop", "uri:shop", 32},
			{"", "dns:thief", 32},
			{"dns:shop", "dns:shop", 7},
			{"", "", 7}, // as all callers without TLS
		} {
			tag := fmt.Sprintf("%s-%d", name, i)
			w.set(func(w *world) { w.caller = tt.holder })
			if _, err := ids.NextRange(t.Context(), &idnodev1.NextRangeRequest{Tag: tag}); err != nil {
				t.Fatal(err)
			}
			w.set(func(w *world) { w.caller = tt.caller })
			returned(tag)
			if counter, _ := w.State.HiLo("default", tag); counter.Max != tt.stands {
				t.Errorf("%s: %q returned a range of %q: the counter stands at %d, want %d", name, tt.caller, tt.holder, counter.Max, tt.stands)
			}
		}
	}
}
