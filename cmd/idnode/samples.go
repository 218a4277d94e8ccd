package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/internal/pause"
	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

// sampleWait bounds how long dev waits for an id: a serving node can be without a leader again for
// a moment.
const sampleWait = 20 * time.Second

// sampleKind is one kind of id, and how to get one.
type sampleKind struct {
	name string
	take func(ctx context.Context, s *clusterClient, tag string) (string, error)
}

// sampleKinds has the five kinds of id.
func sampleKinds() []sampleKind {
	return []sampleKind{
		{"GUID", sampleTemplate("", docid.GUID)},
		{"server-side", sampleTemplate("users/", docid.ServerSide)},
		{"identity", sampleTemplate("users|", docid.Identity)},
		{"HiLo range", sampleRange},
		{"semantic", sampleClaim},
	}
}

// printSamples prints an id of each kind from the node called tag, of a database used only for
// that.
func printSamples(ctx context.Context, w io.Writer, tag, endpoint string) error {
	s := &clusterClient{endpoints: []string{endpoint}, database: "samples", timeout: defaultTimeout}
	defer s.close()
	var rows [][2]string
	for _, kind := range sampleKinds() {
		id, err := patiently(ctx, func(ctx context.Context) (string, error) { return kind.take(ctx, s, tag) })
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		rows = append(rows, [2]string{"  " + kind.name, id})
	}
	fmt.Fprintf(w, "\nids from %s\n", tag)
	fields(w, rows)
	return nil
}

// patiently takes an id, again and again while the node says that it cannot
// yet.
func patiently(ctx context.Context, take func(context.Context) (string, error)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, sampleWait)
	defer cancel()
	for {
		id, err := take(ctx)
		if err == nil || !soon(err) {
			return id, err
		}
		if !pause.For(ctx, 100*time.Millisecond) {
			return "", err
		}
	}
}

// soon says whether the same call may work in a moment.
func soon(err error) bool {
	return codeOf(err) == codes.Unavailable || reasonOf(err) == "TAG_NOT_ASSIGNED"
}

func sampleTemplate(template string, kind docid.Kind) func(context.Context, *clusterClient, string) (string, error) {
	return func(ctx context.Context, s *clusterClient, _ string) (string, error) {
		var o nextOptions
		var req *request
		if kind == docid.Identity {
			req = newRequest("", nil)
		}
		res, err := o.generate(ctx, s, template, 1, req, kind)
		if err != nil {
			return "", err
		}
		return strings.Join(res.GetIds(), " "), nil
	}
}

func sampleRange(ctx context.Context, s *clusterClient, _ string) (string, error) {
	msg := &idnodev1.NextRangeRequest{Database: s.database, Tag: "users"}
	res, err := invoke(ctx, s.once(newRequest("", nil), &msg.RequestId), idnodev1.NewIdsServiceClient,
		idnodev1.IdsServiceClient.NextRange, msg)
	if err != nil {
		return "", err
	}
	suffix := ""
	if res.GetNodeTag() != "" {
		suffix = "-" + res.GetNodeTag()
	}
	return fmt.Sprintf("%s%d%s to %s%d%s", res.GetPrefix(), res.GetLow(), suffix, res.GetPrefix(), res.GetHigh(), suffix), nil
}

// sampleClaim claims an id of the node's own. In a kept data folder an earlier
// run may have done so.
func sampleClaim(ctx context.Context, s *clusterClient, tag string) (string, error) {
	id := "users/" + strings.ToLower(tag) + "@example.org"
	msg := &idnodev1.ClaimRequest{Database: s.database, Id: id}
	_, err := invoke(ctx, s.once(newRequest("", nil), &msg.RequestId), idnodev1.NewIdsServiceClient, idnodev1.IdsServiceClient.Claim, msg)
	switch {
	case err == nil:
		return id + " (claimed)", nil
	case reasonOf(err) == "ID_CLAIMED":
		return id + " (claimed before)", nil
	default:
		return "", err
	}
}
