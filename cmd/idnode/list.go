package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
)

// maxPage is the largest page a server gives.
const maxPage = 1_000

type page struct {
	prefix string
	size   int32
	token  string
}

// pager prints one page and returns the token of the next and the number of printed entries.
type pager func(ctx context.Context, s *clusterClient, p page) (next string, n int, err error)

// list makes cmd a command that prints page after page, at a terminal in columns with these heads.
// Each page has the whole timeout; the pages are not of one log index.
func (a *app) list(cmd *cobra.Command, client clientCommand, heads string, show pager) *cobra.Command {
	var flags listFlags
	flags.register(cmd.Flags())
	return client(cmd, func(ctx context.Context, s *clusterClient, _ []string) error {
		if err := flags.check(); err != nil {
			return err
		}
		if a.toTerminal && !s.out.json {
			return flags.table(ctx, s, heads, show)
		}
		return flags.pages(ctx, s, show)
	})
}

// table prints pages for a person to read.
func (l *listFlags) table(ctx context.Context, s *clusterClient, heads string, show pager) error {
	lines, all := s.out.w, 0
	heads = strings.ReplaceAll(heads, " ", "\t") + "\n"
	err := l.pages(ctx, s, func(ctx context.Context, s *clusterClient, p page) (next string, n int, err error) {
		var page strings.Builder
		columns := tabwriter.NewWriter(&page, 0, 8, 2, ' ', 0)
		s.out.w = bufio.NewWriter(columns)
		fmt.Fprint(s.out.w, heads)
		next, n, err = show(ctx, s, p)
		err = errors.Join(err, s.out.w.Flush(), columns.Flush())
		s.out.w = lines
		if err == nil && heads != "" {
			line, rest, _ := strings.Cut(page.String(), "\n")
			s.out.painted(func(w io.Writer) { fmt.Fprintln(w, line) })
			fmt.Fprint(lines, rest)
		} else if err == nil {
			fmt.Fprint(lines, page.String())
		}
		heads, all = "", all+n // The heads come once, and not before an error.
		return next, n, err
	})
	if err == nil && all == 0 {
		_, err = fmt.Fprintln(lines, "(none)")
	}
	return err
}

func (l *listFlags) pages(ctx context.Context, s *clusterClient, show pager) error {
	p := page{prefix: l.prefix}
	for left := l.limit; ; {
		p.size = maxPage
		if l.limit > 0 {
			p.size = int32(min(left, maxPage))
		}
		next, n, err := show(ctx, s, p)
		left -= int64(n)
		if err != nil || next == "" || l.limit > 0 && left <= 0 {
			return err
		}
		p.token = next
	}
}

// fields prints names and values in two columns; without a value, no line.
func fields(w io.Writer, rows [][2]string) {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, r := range rows {
		if r[1] != "" {
			fmt.Fprintf(tw, "%s\t%s\n", r[0], docid.Escape(r[1]))
		}
	}
	_ = tw.Flush()
}

func parseNumber(name, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, usagef("%s must be from %d to %d, not %s", name, math.MinInt64, math.MaxInt64, text)
	}
	if err != nil {
		return 0, usagef("%s must be a whole number, not %q", name, text)
	}
	return n, nil
}

func newDatabaseCommand(a *app) *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "database",
		Short: "List and delete databases",
		Long: `A database keeps names apart: each has identities, HiLo counters, claims and series of
its own. It is there once it is used, and as long as it has a name.`,
	}, newDatabaseListCommand(a), newDatabaseDeleteCommand(a))
}

func newDatabaseListCommand(a *app) *cobra.Command {
	return a.list(&cobra.Command{
		Use:     "list",
		Short:   "List the databases that have names",
		Example: "  idnode database list",
	}, a.clusterWide, "DATABASE", func(ctx context.Context, s *clusterClient, p page) (string, int, error) {
		res, err := clusterVia(s.ask).ListDatabases(ctx, &idnodev1.ListDatabasesRequest{
			Prefix: p.prefix, PageSize: p.size, PageToken: p.token, Consistency: s.consistency,
		})
		for _, name := range res.GetDatabases() {
			s.out.alone("database", name)
		}
		return res.GetNextPageToken(), len(res.GetDatabases()), err
	})
}

func newDatabaseDeleteCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete DATABASE",
		Short: "Forget all names of a database, so that it counts no more",
		Long: `Forgets the identities, HiLo tags, claims and pools of a database: what was handed out in it
comes again, so the command asks. Server-side ids never come again. A database with a series is not
deleted, nor one with a pool whose windows have not passed.`,
		Example: "  idnode database delete trial",
	}
	sure := a.asks(cmd)
	return a.clusterWide(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		question := fmt.Sprintf("Forgets all names of the database %s: their values, ranges and ids come again.", quote(args[0]))
		if err := s.confirm(ctx, sure, question); err != nil {
			return err
		}
		all := &idnodev1.DeleteDatabaseResponse{More: true}
		for all.GetMore() {
			res, err := clusterVia(s.change).DeleteDatabase(ctx, &idnodev1.DeleteDatabaseRequest{Database: args[0]})
			if err != nil && all.GetNames() > 0 {
				return fmt.Errorf("%w; %d names are forgotten, and the same command goes on", err, all.GetNames())
			}
			if err != nil {
				return err
			}
			all.Names, all.More, all.LogIndex = all.GetNames()+res.GetNames(), res.GetMore(), res.GetLogIndex()
		}
		return s.out.value(nil, all, fmt.Sprintf("%d names forgotten", all.GetNames()))
	})
}

// moment prints a time to the second, in UTC.
func moment(t *timestamppb.Timestamp) string { return t.AsTime().Format(time.RFC3339) }
