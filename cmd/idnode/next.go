package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
)

const (
	// maxCount is the largest --count of next; the server's own limit of one call.
	maxCount = 1_000_000
	// textCount is the largest count asked for as finished ids. Above it the
	// server sends blocks, and the ids are built here.
	textCount = 1_000
	// guidCount is the number of GUIDs requested in one call: they have no blocks, and this
	// many stay well within one answer.
	guidCount = 10_000
)

type nextOptions struct {
	count       int64
	separator   string
	claim       bool
	timeOrdered bool
	request     *requestFlags
}

func newNextCommand(a *app) *cobra.Command {
	var o nextOptions
	cmd := &cobra.Command{
		Use:   "next TEMPLATE",
		Short: "Make ids from a template",
		Long: `Makes ids and prints them, one a line. The form of the template picks the kind:

  ''               a GUID
  users/           server-side ids of the node asked (ends with the separator)
  'users|'         identities: values agreed by the cluster (ends with a pipe)
  users/ayende     a semantic id: checked, and with --claim recorded as taken

With -o json the answer is one object; above 1,000 ids it holds blocks instead of
the ids themselves.`,
		Example: `  idnode next 'users|'
  idnode next users/ --count 100000 > ids.txt
  idnode next users/ayende@example.org --claim
  idnode next '' --time-ordered
  idnode next 'orders|' --request-id invoice-4711`,
	}
	f := cmd.Flags()
	f.Int64Var(&o.count, "count", 1, "how many ids, 1 to 1,000,000")
	f.StringVar(&o.separator, "separator", "", `separator between the parts of an id (default "/")`)
	f.BoolVar(&o.claim, "claim", false, "record the id in the cluster as taken; for a semantic id")
	f.BoolVar(&o.timeOrdered, "time-ordered", false, "GUIDs in order of time (UUIDs of version 7)")
	o.request = newRequestFlags(f)
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		return o.run(ctx, s, args[0], a.stderr)
	})
}

func (o *nextOptions) run(ctx context.Context, s *clusterClient, template string, stderr io.Writer) error {
	if o.count < 1 || o.count > maxCount {
		return usagef("--count must be 1 to 1,000,000, not %d", o.count)
	}
	parsed, err := docid.Parse(template, o.separator)
	if err != nil {
		return badTemplate(err)
	}
	if parsed.Kind == docid.Semantic && !o.claim && !strings.Contains(template, cmp.Or(o.separator, "/")) {
		fmt.Fprintf(stderr, "idnode: this id is %s itself, as given; ask for %s to get a number\n", quote(template), quote(template+"|"))
	}
	req, err := o.requestFor(parsed.Kind)
	if err != nil {
		return err
	}
	atOnce := int64(maxCount)
	if parsed.Kind == docid.GUID {
		atOnce = guidCount
	}
	for left := o.count; left > 0; left -= atOnce {
		res, err := o.generate(ctx, s, template, min(left, atOnce), req, parsed.Kind)
		if err != nil {
			return err
		}
		s.out.result(res, func(io.Writer) { printIDs(ctx, s.out, res) })
	}
	return nil
}

// badTemplate words a refusal as the server words its own.
func badTemplate(err error) error {
	if bad, ok := errors.AsType[*docid.Error](err); ok {
		return usagef("%s: %w", bad.Reason, err)
	}
	return &usageError{err}
}

// requestFor returns the request id of a call: a random one for the kinds that the cluster counts,
// so that a repetition at another endpoint takes nothing again. The other kinds refuse request
// ids, so theirs is sent only if the caller gave one.
func (o *nextOptions) requestFor(kind docid.Kind) (*request, error) {
	if kind == docid.Identity || o.claim {
		return o.request.request()
	}
	return o.request.given()
}

func (o *nextOptions) generate(ctx context.Context, s *clusterClient, template string, count int64, r *request,
	kind docid.Kind,
) (*idnodev1.GenerateResponse, error) {
	blocks := count > textCount && (kind == docid.Identity || kind == docid.ServerSide)
	msg := &idnodev1.GenerateRequest{
		Database: s.database, Template: template, Separator: o.separator, Count: count,
		Claim: o.claim, BlocksOnly: blocks, TimeOrdered: o.timeOrdered,
	}
	return invoke(ctx, s.once(r, &msg.RequestId), idnodev1.NewIdsServiceClient, idnodev1.IdsServiceClient.Generate, msg)
}

func printIDs(ctx context.Context, p *printer, res *idnodev1.GenerateResponse) {
	if len(res.GetIds()) == 0 {
		p.blocks(ctx, res.GetBlocks())
		return
	}
	for _, id := range res.GetIds() {
		p.line(id)
	}
}
