package webpage

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/httpapi"
	"github.com/idnode/idnode/server/service"
)

// TestOrders: a list is arranged as a whole, not each page by itself.
func TestOrders(t *testing.T) {
	s := newWorld(t).newServer(httpapi.Config{})
	for i, value := range []string{"30", "10", "9223372036854775807", "20", "10"} {
		wantJSON(t, send(s, post, api+"identities/seed", fmt.Sprintf(`{"name":"n%d","value":%q}`, i, value)), 200, `{}`)
		wantJSON(t, send(s, post, api+"claims/claim", fmt.Sprintf(`{"id":"c%d"}`, i)), 200, `{}`)
	}
	for query, want := range map[string]string{
		"identities?":                           "[n0 n1 n2 n3 n4]",
		"identities?sort=name":                  "[n0 n1 n2 n3 n4]",
		"identities?sort=nothing":               "[n0 n1 n2 n3 n4]",
		"identities?sort=name&descending=true":  "[n4 n3 n2 n1 n0]",
		"identities?sort=value":                 "[n1 n4 n3 n0 n2]",
		"identities?sort=value&descending=true": "[n2 n0 n3 n4 n1]",
		"identities?sort=value&prefix=n1":       "[n1]",
		"claims?descending=true":                "[c4 c3 c2 c1 c0]",
		"etags?sort=last":                       "[default shop]",
		"etags?sort=last&descending=true":       "[shop default]",
	} {
		var names []string
		for token := ""; ; {
			var got list[name]
			answer := send(s, get, api+query+"&size=2&token="+url.QueryEscape(token), "")
			decodeJSON(t, answer, &got)
			for _, item := range got.Items {
				names = append(names, item.Name)
			}
			if token = got.Next; token == "" || len(names) > 5 {
				break
			}
		}
		if got := fmt.Sprint(names); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	walk(t, s, []step{
		{get, "identities?sort=value&token=x", "", 400, `{"reason":"INVALID_PAGE_TOKEN","field":"token"}`},
		{get, "identities?sort=value&token=-1", "", 400, `{"reason":"INVALID_PAGE_TOKEN"}`},
		{get, "identities?sort=value&token=99", "", 200, `{"items":[],"next":""}`},
	})
}

// TestALongListIsNotArranged: it is looked through as a whole only up to a bound.
func TestALongListIsNotArranged(t *testing.T) {
	fetched := 0
	_, err := whole(t.Context(), service.ListRequest{}, func(_ context.Context, req service.ListRequest) (service.Page[int], error) {
		fetched += req.PageSize
		return service.Page[int]{Items: make([]int, req.PageSize), NextPageToken: "more"}, nil
	})
	if p := problemOf(err); p.Reason != service.ReasonInvalidRequest || p.Field != "sort" || fetched != maxArranged {
		t.Errorf("after %d: %v", fetched, err)
	}
}

// TestListsAreArrangedInTurns: each holds the whole of its list, so one of a caller is arranged
// at a time; others do not wait for it.
func TestListsAreArrangedInTurns(t *testing.T) {
	w := newWorld(t)
	svc, err := service.New(service.Config{Proposer: w, Linearizer: w, State: w.state, Etags: w, Cluster: w, Tag: func() (string, bool) { return "A", true }})
	if err != nil {
		t.Fatal(err)
	}
	p := New(Config{Service: svc})
	begun, release, ended := make(chan string, 4), make(chan struct{}), make(chan error)
	arrange := func(caller string) {
		ctx := service.WithCaller(t.Context(), service.Caller{Principal: caller})
		_, err := arranged(p, httptest.NewRequestWithContext(ctx, get, api+"identities?descending=true", nil), func(context.Context, service.ListRequest) (service.Page[int], error) {
			begun <- caller
			<-release
			return service.Page[int]{}, nil
		}, nil, func(i int) int { return i })
		ended <- err
	}
	for range 3 {
		go arrange("shop")
	}
	if first := <-begun; first != "shop" {
		t.Error(first)
	}
	go arrange("books")
	if second := <-begun; second != "books" {
		t.Errorf("a second list of %s is arranged", second)
	}
	close(release)
	for range 4 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestPagesOfTheLongestNames: what a list of the page takes is in proportion to what is
// counted of a request.
func TestPagesOfTheLongestNames(t *testing.T) {
	w := newWorld(t)
	s := w.newServer(httpapi.Config{})
	for i := range 300 {
		w.Must(op.Envelope{Database: "default"}, &raftlogv1.IdentitySeed{Name: strings.Repeat("<", 1990) + fmt.Sprint(i), Value: 1})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	answer := send(s, get, api+"identities?size=1000", "")
	runtime.ReadMemStats(&after)
	var got list[name]
	decodeJSON(t, answer, &got)
	if taken := after.TotalAlloc - before.TotalAlloc; len(got.Items) != 100 || got.Next == "" || taken > 16<<20 {
		t.Errorf("%d names in %d bytes", len(got.Items), taken)
	}
}
