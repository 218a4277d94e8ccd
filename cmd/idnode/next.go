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
	// textCount is the largest count asked for as finished ids. Above it the server sends blocks.
	textCount = 1_000
	// guidCount is how many GUIDs one call requests: they have no blocks, and so many fit into one answer.
	guidCount = 10_000
)

func newNextCommand(a *app) *cobra.Command {
	var msg idnodev1.GenerateRequest
	cmd := &cobra.Command{
		Use:   "next TEMPLATE",
		Short: "Make ids from a template",
		Long: `Makes ids and prints them, one a line. The form of the template picks the kind:

  ''               a GUID; needs nothing
  users/           server-side ids of the node asked (ends with the separator); need
                   that node alone
  'users|'         identities: values agreed by the cluster (ends with a pipe); need a
                   quorum
  users/ayende     a semantic id: checked, and with --claim recorded as taken; only the
                   claim needs a quorum

The first id begins a name and a database: nothing is defined before. 'hilo next' needs
a collection's tag, 'snowflake next' a pool, and 'series take' a series.

With -o json the answer is one object; above 1,000 ids it holds blocks instead of
the ids themselves.`,
		Example: `  idnode next 'users|'
  idnode next users/ --count 100000 > ids.txt
  idnode next users/ayende@example.org --claim
  idnode next '' --time-ordered
  idnode next 'orders|' --request-id invoice-4711`,
	}
	f := cmd.Flags()
	f.Int64Var(&msg.Count, "count", 1, "how many ids, 1 to 1,000,000")
	f.StringVar(&msg.Separator, "separator", "", `separator between the parts of an id (default "/")`)
	f.BoolVar(&msg.Claim, "claim", false, "record the id in the cluster as taken; for a semantic id")
	f.BoolVar(&msg.TimeOrdered, "time-ordered", false, "GUIDs in order of time (UUIDs of version 7)")
	req := newRequest(f)
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		msg.Database, msg.Template = s.database, args[0]
		return generate(ctx, s, req, &msg)
	})
}

// generate makes as many ids as msg counts, in several calls if they do not fit into one.
func generate(ctx context.Context, s *clusterClient, req *request, msg *idnodev1.GenerateRequest) error {
	left := msg.GetCount()
	if left < 1 || left > maxCount {
		return usagef("--count must be 1 to 1,000,000, not %d", left)
	}
	parsed, err := docid.Parse(msg.GetTemplate(), msg.GetSeparator())
	if bad, ok := errors.AsType[*docid.Error](err); ok {
		return usagef("%s: %w", bad.Reason, err) // As the server words it.
	} else if err != nil {
		return &usageError{err}
	}
	kind := parsed.Kind
	if kind == docid.Semantic && !msg.GetClaim() && !strings.Contains(msg.GetTemplate(), cmp.Or(msg.GetSeparator(), "/")) {
		fmt.Fprintf(s.stderr, "idnode: this id is %s itself, as given; ask for %s to get a number\n",
			quote(msg.GetTemplate()), quote(msg.GetTemplate()+"|"))
	}
	// What the cluster counts has a request id, so that a repetition at another endpoint takes nothing
	// again. The other kinds refuse request ids: theirs is sent only if the caller gave one.
	send := sending(s.ask)
	if kind == docid.Identity || msg.GetClaim() || req.given() {
		send = s.once(req, &msg.RequestId)
	}
	msg.BlocksOnly = left > textCount && (kind == docid.Identity || kind == docid.ServerSide)
	atOnce := int64(maxCount)
	if kind == docid.GUID {
		atOnce = guidCount
	}
	for ; left > 0; left -= atOnce {
		msg.Count = min(left, atOnce)
		res, err := idsVia(send).Generate(ctx, msg)
		if err != nil {
			return err
		}
		s.out.result(res, func(io.Writer) {
			for _, id := range res.GetIds() {
				s.out.line(id)
			}
			if len(res.GetIds()) == 0 {
				s.out.blocks(ctx, res.GetBlocks())
			}
		})
	}
	return nil
}
