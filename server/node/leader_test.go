package node

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/idnode/idnode/server/service"
)

// named is what an answer says of the leader: status 0 if there was no answer.
type named struct {
	status int
	term   uint64
	leader string
}

func (r *running) named(call string) (n named) {
	r.t.Helper()
	res, err := r.client.Post(r.url+"/idnode.v1."+call, "application/json", strings.NewReader("{}"))
	if err != nil {
		r.t.Log(err)
		return named{}
	}
	defer res.Body.Close()
	n.status, n.leader = res.StatusCode, res.Header.Get(service.LeaderHeader)
	if n.term, err = strconv.ParseUint(res.Header.Get(service.TermHeader), 10, 64); err != nil {
		r.t.Fatalf("%s: %v", call, err)
	}
	return n
}

// TestEachAnswerNamesTheLeader, also an error: the leader itself, a follower, a leader without an HTTP
// port, after a change of leader with a greater term, and nobody where nobody leads.
func TestEachAnswerNamesTheLeader(t *testing.T) {
	t.Parallel()
	all, nodes := configs(t, "A", "B", "C"), map[string]*running{}
	all["C"].HTTP, all["C"].AdvertiseHTTP = "", ""
	for tag, c := range all {
		nodes[tag] = run(t, c)
	}
	nodes["A"].ready()
	nodes["B"].ready()
	var last uint64
	for _, leader := range []string{"A", "B", "C", "A"} {
		nodes["A"].until(leader+" to lead", func() bool {
			_, _ = nodes["A"].cluster.Transfer(context.Background(), leader)
			return nodes["A"].cluster.Status().LeaderTag == leader && nodes["B"].cluster.Status().LeaderTag == leader
		})
		var at [2]named
		nodes["A"].until("both to name "+leader, func() bool {
			at = [2]named{nodes["A"].named("ClusterService/GetStatus"), nodes["B"].named("ClusterService/GetStatus")}
			return at[0] == at[1] && at[0].leader == all[leader].AdvertiseHTTP
		})
		if at[0].term <= last {
			t.Errorf("%s leads in term %d, after %d", leader, at[0].term, last)
		}
		last = at[0].term
		for call, status := range map[string]int{
			"IdsService/NextIdentity": http.StatusBadRequest, "IdsService/Nothing": http.StatusNotFound,
		} {
			if got := nodes["B"].named(call); got != (named{status, last, all[leader].AdvertiseHTTP}) {
				t.Errorf("%s while %s leads in term %d: %+v", call, leader, last, got)
			}
		}
	}
	nodes["A"].stop()
	nodes["C"].stop()
	nodes["B"].until("no leader", func() bool {
		got := nodes["B"].named("ClusterService/GetStatus")
		return got.status == http.StatusOK && got.leader == "" && got.term >= last
	})
}
