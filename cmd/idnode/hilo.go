package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
)

func newHiloCommand(a *app) *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "hilo",
		Short: "Ranges of numbers for clients that make ids themselves",
		Long: `A HiLo range belongs to its caller alone: ids made of its prefix, a number of the
range and its node tag need no further call.`,
	}, newHiloNextCommand(a), newHiloGetCommand(a), newHiloSetCommand(a), newHiloReturnCommand(a),
		newHiloWhoHoldsCommand(a), newHiloListCommand(a), newHiloReservesCommand(a))
}

func newHiloNextCommand(a *app) *cobra.Command {
	var msg idnodev1.NextRangeRequest
	cmd := &cobra.Command{
		Use:   "next TAG",
		Short: "Reserve the next range of a collection's tag",
		Long: `Needs the tag of a collection, which the first range creates, and a quorum or the node's
reserve. Reserves a range. An id of it is prefix + number + "-" + node-tag (no "-" if there
is no node-tag). Given the size and the time of the last range, busy clients get larger ranges.`,
		Example: `  idnode hilo next users
  idnode hilo next users --size 1000
  idnode hilo next users --last-size 32 --last-range-at 2024-05-01T12:00:00Z`,
	}
	f := cmd.Flags()
	f.Int64Var(&msg.Size, "size", 0, "size of the range, 1 to 1,048,576; 0 lets the cluster decide")
	f.Int64Var(&msg.LastSize, "last-size", 0, "size of the last range; 0 if there was none")
	f.Int64Var(&msg.LastMax, "last-max", 0, "the range begins above this number")
	lastRangeAt := f.String("last-range-at", "", "when the last range came, RFC 3339; the range-at of its answer")
	f.StringVar(&msg.Separator, "separator", "", `separator of the ids to come (default "/")`)
	f.StringVar(&msg.Label, "label", "", "label of the holder, at most 64 bytes; hilo who-holds shows it")
	req := newRequest(f)
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		if *lastRangeAt != "" {
			at, err := time.Parse(time.RFC3339Nano, *lastRangeAt)
			if err != nil {
				return usagef("--last-range-at must be a time like 2024-05-01T12:00:00Z, not %q", *lastRangeAt)
			}
			msg.LastRangeAt = timestamppb.New(at)
		}
		msg.Database, msg.Tag = s.database, args[0]
		res, err := idsVia(s.once(req, &msg.RequestId)).NextRange(ctx, &msg)
		return s.out.answer(err, res, func(w io.Writer) { printRange(w, res) })
	})
}

func printRange(w io.Writer, r *idnodev1.NextRangeResponse) {
	fields(w, [][2]string{
		{"low", fmt.Sprint(r.GetLow())},
		{"high", fmt.Sprint(r.GetHigh())},
		{"size", fmt.Sprint(r.GetSize())},
		{"prefix", r.GetPrefix()},
		{"node-tag", r.GetNodeTag()},
		{"range-at", r.GetRangeAt().AsTime().Format(time.RFC3339Nano)},
		{"token", r.GetToken()},
	})
}

func newHiloGetCommand(a *app) *cobra.Command {
	return a.client(reading(&cobra.Command{
		Use:     "get TAG",
		Short:   "Print the highest number reserved for a tag",
		Example: "  idnode hilo get users",
	}), func(ctx context.Context, s *clusterClient, args []string) error {
		res, err := idsVia(s.ask).GetHiLo(ctx, &idnodev1.GetHiLoRequest{Database: s.database, Tag: args[0], Consistency: s.consistency})
		return s.out.value(err, res.GetHilo(), res.GetHilo().GetMax())
	})
}

func newHiloSetCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set TAG MAX --expected N",
		Short: "Raise a counter if it still has the expected value",
		Long: `Sets the highest number reserved for a tag, if it is N at that moment: for clients
that run the whole HiLo algorithm themselves. Fails with CONCURRENCY if someone was faster.`,
		Example: "  idnode hilo set users 64 --expected 32",
	}
	expected := cmd.Flags().Int64("expected", 0, "the value read before; 0 for a tag not used yet (required)")
	req := newRequest(cmd.Flags())
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		limit, err := parseNumber("MAX", args[1])
		if err != nil {
			return err
		}
		if !cmd.Flags().Changed("expected") {
			return usagef("--expected is required: it guards against setting over someone else's change")
		}
		msg := &idnodev1.SetHiLoRequest{Database: s.database, Tag: args[0], Max: limit, Expected: *expected}
		res, err := idsVia(s.once(req, &msg.RequestId)).SetHiLo(ctx, msg)
		return s.out.value(err, res, res.GetMax())
	})
}

func newHiloReturnCommand(a *app) *cobra.Command {
	var msg idnodev1.ReturnRangeRequest
	cmd := &cobra.Command{
		Use:   "return TAG --low N --high N --last N",
		Short: "Give the unused rest of a range back",
		Long: `Gives back the numbers above --last of the range --low to --high. Only the newest
range of a tag can come back, once; anything else changes nothing and says so.

Without the range's --token it is matched by its numbers, and only if it was issued to
the name in this certificate: then no program may still use it, and the command asks.`,
		Example: "  idnode hilo return users --low 1 --high 32 --last 7",
	}
	f := cmd.Flags()
	f.Int64Var(&msg.Low, "low", 0, "the range's first number (required)")
	f.Int64Var(&msg.High, "high", 0, "the range's last number (required)")
	msg.Last = f.Int64("last", 0, "the last number used; low-1 if none was (required)")
	f.StringVar(&msg.Token, "token", "", "the token that came with the range; hilo next shows it")
	req := newRequest(f)
	sure := a.asks(cmd)
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		for _, name := range []string{"low", "high", "last"} {
			if !f.Changed(name) {
				return usagef("--%s is required", name)
			}
		}
		if msg.WithoutToken = msg.GetToken() == ""; msg.GetWithoutToken() {
			question := fmt.Sprintf("Gives %d to %d of %s back: other programs get these numbers, so none may use them still.", msg.GetLast()+1,
				msg.GetHigh(), quote(args[0]))
			if err := s.confirm(ctx, sure, question); err != nil {
				return err
			}
		}
		msg.Database, msg.Tag = s.database, args[0]
		res, err := idsVia(s.once(req, &msg.RequestId)).ReturnRange(ctx, &msg)
		text := fmt.Sprintf("returned, max is now %d", res.GetMax())
		if !res.GetReturned() {
			text = fmt.Sprintf("not returned, max stays %d: late, repeated, foreign, or not the newest range", res.GetMax())
		}
		return s.out.value(err, res, text)
	})
}

func newHiloWhoHoldsCommand(a *app) *cobra.Command {
	return a.client(reading(&cobra.Command{
		Use:   "who-holds TAG NUMBER",
		Short: "Show who got the range that a number is in",
		Long: `Shows the range of a number, and who got it: label, principal, the node that served it, and
when. The cluster remembers the newest four ranges of a tag that can still be given
back. The state is outstanding, reserved (a node has it for callers to come),
not-remembered (it is taken) or not-issued (nobody has it).`,
		Example: "  idnode hilo who-holds users 65",
	}), func(ctx context.Context, s *clusterClient, args []string) error {
		number, err := parseNumber("NUMBER", args[1])
		if err != nil {
			return err
		}
		msg := &idnodev1.WhoHoldsRequest{Database: s.database, Tag: args[0], Number: number, Consistency: s.consistency}
		res, err := idsVia(s.ask).WhoHolds(ctx, msg)
		return s.out.answer(err, res, func(w io.Writer) { printRangeHolder(w, res) })
	})
}

func printRangeHolder(w io.Writer, r *idnodev1.WhoHoldsResponse) {
	list := [][2]string{{"state", word(r.GetState())}}
	if r.GetHigh() > 0 {
		list = append(list, [2]string{"low", fmt.Sprint(r.GetLow())}, [2]string{"high", fmt.Sprint(r.GetHigh())})
	}
	if h := r.GetHolder(); h != nil {
		list = append(list, [][2]string{
			{"label", h.GetLabel()},
			{"principal", h.GetPrincipal()},
			{"node-tag", h.GetNodeTag()},
			{"issued-at", moment(h.GetIssuedAt())},
		}...)
	}
	fields(w, list)
}

func newHiloListCommand(a *app) *cobra.Command {
	return a.list(&cobra.Command{
		Use:     "list",
		Short:   "List the counters: tag and highest number reserved",
		Example: "  idnode hilo list --prefix us",
	}, a.client, "TAG MAX", func(ctx context.Context, s *clusterClient, p page) (string, int, error) {
		res, err := idsVia(s.ask).ListHiLo(ctx, &idnodev1.ListHiLoRequest{
			Database: s.database, Prefix: p.prefix, PageSize: p.size, PageToken: p.token, Consistency: s.consistency,
		})
		for _, h := range res.GetHilos() {
			s.out.result(h, func(w io.Writer) { fmt.Fprintf(w, "%s\t%d\n", docid.Escape(h.GetTag()), h.GetMax()) })
		}
		return res.GetNextPageToken(), len(res.GetHilos()), err
	})
}

func newHiloReservesCommand(a *app) *cobra.Command {
	return a.clusterWide(&cobra.Command{
		Use:   "reserves",
		Short: "List what nodes have in reserve: node, database, tag, numbers, minutes they last",
		Long: `Lists the numbers that nodes hold for ranges while they are cut off (serve --reserve-for).
A node knows only its own: every --endpoint is asked.`,
		Example: "  idnode hilo reserves --endpoint 10.0.0.1:7400,10.0.0.2:7400",
	}, func(ctx context.Context, s *clusterClient, _ []string) error {
		if err := s.settle(ctx); err != nil {
			return err
		}
		var failed []error
		for _, endpoint := range s.Endpoints {
			node := *s
			node.Endpoints = []string{endpoint}
			failed = append(failed, printReserves(ctx, &node))
		}
		return errors.Join(failed...)
	})
}

func printReserves(ctx context.Context, s *clusterClient) error {
	req := &idnodev1.ListReservesRequest{PageSize: maxPage}
	for {
		res, err := idsVia(s.ask).ListReserves(ctx, req)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Endpoints[0], err)
		}
		for _, r := range res.GetReserves() {
			s.out.ofNode(res.GetNodeTag(), r, func(w io.Writer) {
				fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%.1f\n", res.GetNodeTag(), docid.Escape(r.GetDatabase()), docid.Escape(r.GetTag()), r.GetNumbers(),
					r.GetLasts().AsDuration().Minutes())
			})
		}
		if req.PageToken = res.GetNextPageToken(); req.PageToken == "" {
			return nil
		}
	}
}
