package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/idnode/idnode/client/idnodev1"
)

// printSamples prints an id of each kind from the node called tag, of a database used only for that.
func printSamples(ctx context.Context, w io.Writer, tag, endpoint string) error {
	s := &clusterClient{endpoints: []string{endpoint}, database: "samples", timeout: defaultTimeout}
	defer s.close()
	var rows [][2]string
	for _, kind := range []struct {
		name string
		take func(ctx context.Context, s *clusterClient, tag string) (string, error)
	}{
		{"GUID", sampleTemplate("")},
		{"server-side", sampleTemplate("users/")},
		{"identity", sampleTemplate("users|")},
		{"HiLo range", sampleRange},
		{"semantic", sampleClaim},
	} {
		id, err := kind.take(ctx, s, tag)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		rows = append(rows, [2]string{"  " + kind.name, id})
	}
	fmt.Fprintf(w, "\nids from %s\n", tag)
	fields(w, rows)
	return nil
}

// sampleTemplate, sampleRange and sampleClaim wait for an answer: a serving node can be without a
// leader again for a moment.
func sampleTemplate(template string) func(context.Context, *clusterClient, string) (string, error) {
	return func(ctx context.Context, s *clusterClient, _ string) (string, error) {
		res, err := invoke(ctx, s.untilAnswered, idnodev1.NewIdsServiceClient, idnodev1.IdsServiceClient.Generate,
			&idnodev1.GenerateRequest{Database: s.database, Template: template, Count: 1})
		return strings.Join(res.GetIds(), " "), err
	}
}

func sampleRange(ctx context.Context, s *clusterClient, _ string) (string, error) {
	res, err := invoke(ctx, s.untilAnswered, idnodev1.NewIdsServiceClient, idnodev1.IdsServiceClient.NextRange,
		&idnodev1.NextRangeRequest{Database: s.database, Tag: "users"})
	return fmt.Sprintf("%[1]s%[2]d-%[4]s to %[1]s%[3]d-%[4]s", res.GetPrefix(), res.GetLow(), res.GetHigh(), res.GetNodeTag()), err
}

// sampleClaim claims an id of the node's own. In a kept data folder an earlier run may have done so.
func sampleClaim(ctx context.Context, s *clusterClient, tag string) (string, error) {
	id := "users/" + strings.ToLower(tag) + "@example.org"
	_, err := invoke(ctx, s.untilAnswered, idnodev1.NewIdsServiceClient, idnodev1.IdsServiceClient.Claim,
		&idnodev1.ClaimRequest{Database: s.database, Id: id})
	if reasonOf(err) == "ID_CLAIMED" {
		return id + " (claimed before)", nil
	}
	return id + " (claimed)", err
}
