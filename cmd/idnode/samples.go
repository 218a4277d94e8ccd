package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/idnode/idnode/client/idnodev1"
)

// printSamples prints an id of each kind from the node called tag, of a database used only for that.
// It waits for answers: a serving node can be without a leader again for a moment.
func printSamples(ctx context.Context, w io.Writer, tag, endpoint string) error {
	s := &clusterClient{endpoints: []string{endpoint}, database: "samples", timeout: defaultTimeout}
	defer s.close()
	var rows [][2]string
	for _, kind := range [][2]string{{"GUID", ""}, {"server-side", "users/"}, {"identity", "users|"}} {
		res, err := invoke(ctx, s.untilAnswered, idnodev1.NewIdsServiceClient, idnodev1.IdsServiceClient.Generate,
			&idnodev1.GenerateRequest{Database: s.database, Template: kind[1], Count: 1})
		if err != nil {
			return fmt.Errorf("%s: %w", kind[0], err)
		}
		rows = append(rows, [2]string{"  " + kind[0], strings.Join(res.GetIds(), " ")})
	}
	res, err := invoke(ctx, s.untilAnswered, idnodev1.NewIdsServiceClient, idnodev1.IdsServiceClient.NextRange,
		&idnodev1.NextRangeRequest{Database: s.database, Tag: "users"})
	if err != nil {
		return fmt.Errorf("HiLo range: %w", err)
	}
	id, claimed := "users/"+strings.ToLower(tag)+"@example.org", " (claimed)"
	_, err = invoke(ctx, s.untilAnswered, idnodev1.NewIdsServiceClient, idnodev1.IdsServiceClient.Claim,
		&idnodev1.ClaimRequest{Database: s.database, Id: id})
	if reasonOf(err) == "ID_CLAIMED" { // By an earlier run, in a kept data folder.
		claimed, err = " (claimed before)", nil
	}
	if err != nil {
		return fmt.Errorf("semantic: %w", err)
	}
	fmt.Fprintf(w, "\nids from %s\n", tag)
	fields(w, append(rows, [2]string{
		"  HiLo range",
		fmt.Sprintf("%[1]s%[2]d-%[4]s to %[1]s%[3]d-%[4]s", res.GetPrefix(), res.GetLow(), res.GetHigh(), res.GetNodeTag()),
	}, [2]string{"  semantic", id + claimed}))
	return nil
}
