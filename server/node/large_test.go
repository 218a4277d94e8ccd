package node

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/idnode/idnode/client/idnodev1"
)

// TestLargeAnswersAtAFollower: calls that ask for little and are answered with much, all at
// once at a follower. Together their answers are more than a message between nodes
// was ever allowed to have; each comes, and so do the small ones beside them.
func TestLargeAnswersAtAFollower(t *testing.T) {
	t.Parallel()
	nodes := map[string]*running{}
	for tag, c := range configs(t, "A", "B", "C") {
		c.CallTimeout = testTimeout / 2 // A busy machine is slow, and answers.
		nodes[tag] = run(t, c)
	}
	for _, n := range nodes {
		n.ready()
	}
	follower := nodes["A"]
	for tag, n := range nodes {
		if nodes["A"].cluster.Status().LeaderTag != tag {
			follower = n
		}
	}
	conn, err := grpc.NewClient(follower.cfg.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	numbers, ids := idnodev1.NewSeriesServiceClient(conn), idnodev1.NewIdsServiceClient(conn)
	take := &idnodev1.TakeNumbersRequest{Series: "bills", Values: map[string]string{}, Label: strings.Repeat("L", 64)}
	template := "{number:4}"
	for _, name := range "abcdefg" {
		take.Values["v"+string(name)] = strings.Repeat("X", 16)
		template = fmt.Sprintf("{v%c:16}", name) + template
	}
	for i := range 1000 {
		take.Keys = append(take.Keys, fmt.Sprintf("%02x", i))
	}
	if _, err := numbers.DefineSeries(ctx,
		&idnodev1.DefineSeriesRequest{Name: "bills", Definition: &idnodev1.SeriesDefinition{Format: template}}); err != nil {
		t.Fatal(err)
	}
	if _, err := numbers.TakeNumbers(ctx, take); err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			if res, err := numbers.TakeNumbers(ctx, take); err != nil || len(res.GetNumbers()) != len(take.Keys) {
				t.Errorf("%d numbers, %v", len(res.GetNumbers()), err)
			}
			if _, err := ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "orders"}); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
}
