package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/client/snowflake"
)

func newSnowflakeCommand(a *app) *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "snowflake",
		Short: "64-bit ids that sort by time, and the workers that make them",
		Long: `A Snowflake id has a time, the number of a worker of a pool, and a sequence number. The
windows of time that a worker is leased for never overlap, so no id comes twice. Clients
lease by themselves; these commands are for operators and scripts.`,
	}, newSnowflakeDefineCommand(a), newSnowflakeNextCommand(a), newSnowflakePoolsCommand(a), newSnowflakeWorkersCommand(a),
		newSnowflakeAcquireCommand(a), newSnowflakeRenewCommand(a), newSnowflakeReleaseCommand(a), newSnowflakeEvictCommand(a))
}

func newSnowflakeDefineCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "define POOL",
		Short: "Begin a pool of workers",
		Long: `Begins a pool. Its layout stays, one of twitter (41 bits of milliseconds, 10 of the worker,
12 of the sequence), sonyflake-bits (39 bits of 10 ms, 16, 8), instagram (40 of 1 ms, 13, 10) and
javascript (38 of 10 ms, 7, 8: 53 bits in all). The API takes other layouts too.`,
		Example: `  idnode snowflake define orders
  idnode snowflake define carts --layout javascript --window 1h`,
	}
	layout := cmd.Flags().String("layout", "twitter", "a ready-made layout")
	window := cmd.Flags().Duration("window", 0, "the longest window of a worker, 10s to 24h (default 10m)")
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		msg := &idnodev1.DefinePoolRequest{Database: s.database, Name: args[0], LayoutName: *layout, Window: asDuration(*window)}
		res, err := workersVia(s.askUntilAnswered).DefinePool(ctx, msg)
		return s.out.value(err, res, docid.Escape(args[0])+" defined")
	})
}

// asDuration leaves out 0.
func asDuration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

func newSnowflakeNextCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "next POOL",
		Short: "Make ids at the node asked, which has a worker for itself",
		Long: `Needs a pool, which 'idnode snowflake define POOL' begins once, and a quorum only for a new
window of time. Makes ids at the node asked, which leases a worker for itself.`,
		Example: "  idnode snowflake next orders --count 3",
	}
	count := cmd.Flags().Int32("count", 1, "how many ids, 1 to 10,000")
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		if *count < 1 {
			return usagef("--count must be above zero, not %d", *count)
		}
		msg := &idnodev1.NextSnowflakesRequest{Database: s.database, Pool: args[0], Count: *count}
		res, err := workersVia(s.askUntilAnswered).NextSnowflakes(ctx, msg)
		return s.out.answer(err, res, func(w io.Writer) {
			for _, id := range res.GetIds() {
				fmt.Fprintln(w, id)
			}
		})
	})
}

func newSnowflakePoolsCommand(a *app) *cobra.Command {
	return a.list(&cobra.Command{
		Use:     "pools",
		Short:   "List the pools: name, workers in use, workers in all, longest window, end of the first window, end of the ids",
		Example: "  idnode snowflake pools",
	}, a.client, "POOL IN-USE WORKERS WINDOW FIRST-END IDS-END", func(ctx context.Context, s *clusterClient, p page) (string, int, error) {
		res, err := workersVia(s.ask).ListPools(ctx, &idnodev1.ListPoolsRequest{
			Database: s.database, Prefix: p.prefix, PageSize: p.size, PageToken: p.token, Consistency: s.consistency,
		})
		for _, pool := range res.GetPools() {
			s.out.result(pool, func(w io.Writer) {
				end := "-"
				if pool.GetFirstEnd() != nil {
					end = moment(pool.GetFirstEnd())
				}
				fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\n", docid.Escape(pool.GetName()), pool.GetInUse(), pool.GetWorkers(),
					pool.GetWindow().AsDuration(), end, idsEnd(pool.GetLayout()))
			})
		}
		return res.GetNextPageToken(), len(res.GetPools()), err
	})
}

// idsEnd is the day on which a layout has no time left.
func idsEnd(l *idnodev1.PoolLayout) string {
	layout := snowflake.Layout{
		Epoch: l.GetEpoch().AsTime().UnixMilli(), Unit: max(l.GetUnit().AsDuration().Milliseconds(), 1), TimeBits: int(l.GetTimeBits()),
	}
	return time.UnixMilli(layout.UnixMilli(layout.End())).UTC().Format(time.DateOnly)
}

func newSnowflakeWorkersCommand(a *app) *cobra.Command {
	return a.client(reading(&cobra.Command{
		Use:     "workers POOL",
		Short:   "List the workers that ever had a holder: number, window, free, in-use or evicted, holder, principal",
		Example: "  idnode snowflake workers orders",
	}), func(ctx context.Context, s *clusterClient, args []string) error {
		msg := &idnodev1.ListWorkersRequest{Database: s.database, Pool: args[0], Consistency: s.consistency}
		return eachWorker(ctx, s, msg, func(worker *idnodev1.Worker) bool {
			s.out.result(worker, func(w io.Writer) {
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", worker.GetWorker(), moment(worker.GetFrom()), moment(worker.GetUntil()), workerState(worker),
					docid.Escape(worker.GetHolder()), docid.Escape(worker.GetPrincipal()))
			})
			return true
		})
	})
}

// eachWorker calls f with each worker that ever had a holder, until it returns false.
func eachWorker(ctx context.Context, s *clusterClient, msg *idnodev1.ListWorkersRequest, f func(*idnodev1.Worker) bool) error {
	msg.PageSize = 1000
	for {
		res, err := workersVia(s.ask).ListWorkers(ctx, msg)
		if err != nil {
			return err
		}
		for _, worker := range res.GetWorkers() {
			if !f(worker) {
				return nil
			}
		}
		if msg.PageToken = res.GetNextPageToken(); msg.GetPageToken() == "" {
			return nil
		}
	}
}

func workerState(w *idnodev1.Worker) string {
	switch {
	case w.GetFree():
		return "free"
	case w.GetEvicted():
		return "evicted"
	}
	return "in-use"
}

func newSnowflakeEvictCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "evict POOL WORKER",
		Short: "End a worker's lease without its holder: it is not renewed any more",
		Long: `Ends the lease of a worker whose holder does not give it back, and prints the end of its
window. Until then the holder makes ids, so none comes twice; then the worker is free, and
the holder has to acquire one anew. 'snowflake workers' shows whose each is.`,
		Example: "  idnode snowflake evict orders 3",
	}
	sure := a.asks(cmd)
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		number, err := workerNumber(args[1])
		if err != nil {
			return err
		}
		msg := &idnodev1.EvictWorkerRequest{Database: s.database, Pool: args[0], Worker: &number}
		if !sure.yes {
			whose, err := holderOf(ctx, s, msg)
			if err != nil {
				return err
			}
			question := fmt.Sprintf("Takes worker %d of %s from %s: it is not renewed any more.", number, quote(args[0]), whose)
			if err := s.confirm(ctx, sure, question); err != nil {
				return err
			}
		}
		res, err := workersVia(s.keyed).EvictWorker(ctx, msg)
		return s.out.answer(err, res, func(w io.Writer) { fmt.Fprintln(w, "evicted, its window ends at "+moment(res.GetUntil())) })
	})
}

// holderOf says whose a worker is, and sets the request's holder: the answer is about that one. A principal that may
// evict it need not be allowed to read.
func holderOf(ctx context.Context, s *clusterClient, msg *idnodev1.EvictWorkerRequest) (string, error) {
	whose := "nobody: it never had a holder"
	list := &idnodev1.ListWorkersRequest{Database: msg.GetDatabase(), Pool: msg.GetPool()}
	err := eachWorker(ctx, s, list, func(w *idnodev1.Worker) bool {
		if w.GetWorker() != msg.GetWorker() {
			return true
		}
		msg.Holder = w.GetHolder()
		whose = fmt.Sprintf("%s of principal %s, whose window ends at %s", quote(w.GetHolder()), quote(w.GetPrincipal()), moment(w.GetUntil()))
		return false
	})
	if reasonOf(err) == "PERMISSION_DENIED" {
		return "its holder", nil
	}
	return whose, err
}

func newSnowflakeAcquireCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "acquire POOL HOLDER",
		Short: "Lease a worker by hand, for a generator that is no client of idnode",
		Long: `Leases a worker. Ids with times from --from to below --until, in the layout's units since
its epoch, are the holder's own. Renew it in time; a lease that has passed is acquired anew.`,
		Example: "  idnode snowflake acquire orders web-1",
	}
	window := cmd.Flags().Duration("window", 0, "the length of the window (default the pool's longest)")
	req := newRequest(cmd.Flags())
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		msg := &idnodev1.AcquireWorkerRequest{
			Database: s.database, Pool: args[0], Holder: args[1], Window: asDuration(*window), Now: timestamppb.Now(),
		}
		send := s.once(req, &msg.RequestId)
		res, err := workersVia(send).AcquireWorker(ctx, msg)
		return s.out.answer(err, res, func(w io.Writer) {
			fields(w, [][2]string{
				{"worker", strconv.Itoa(int(res.GetWorker()))},
				{"from", strconv.FormatInt(res.GetFrom(), 10)},
				{"until", strconv.FormatInt(res.GetUntil(), 10)},
				{"epoch", res.GetLayout().GetEpoch().AsTime().Format(time.RFC3339Nano)},
				{"unit", res.GetLayout().GetUnit().AsDuration().String()},
				{"token", res.GetToken()},
			})
		})
	})
}

func tokenFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("token", "", "the token of the lease; snowflake acquire shows it (required)")
}

func workerNumber(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, usagef("WORKER must be a number from 0 on, not %q", text)
	}
	return int32(n), nil
}

func leaseOf(number, token string) (worker int32, err error) {
	if token == "" {
		return 0, usagef("--token is required")
	}
	return workerNumber(number)
}

func newSnowflakeRenewCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "renew POOL WORKER --token TOKEN",
		Short:   "Move the end of a worker's window, and print it",
		Example: "  idnode snowflake renew orders 0 --token 4fe1a2b3c4d5e6f7",
	}
	token := tokenFlag(cmd)
	window := cmd.Flags().Duration("window", 0, "the length of the window from now on (default the pool's longest)")
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		worker, err := leaseOf(args[1], *token)
		if err != nil {
			return err
		}
		msg := &idnodev1.RenewWorkerRequest{
			Database: s.database, Pool: args[0], Worker: worker, Token: *token, Window: asDuration(*window), Now: timestamppb.Now(),
		}
		res, err := workersVia(s.askUntilAnswered).RenewWorker(ctx, msg)
		return s.out.value(err, res, res.GetUntil())
	})
}

func newSnowflakeReleaseCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "release POOL WORKER --token TOKEN --next TIME",
		Short:   "Free a worker, and the rest of its window",
		Example: "  idnode snowflake release orders 0 --token 4fe1a2b3c4d5e6f7 --next 505612345678",
	}
	token := tokenFlag(cmd)
	next := cmd.Flags().Int64("next", 0, "the first time that no id of the holder has, in units since the epoch (required)")
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		worker, err := leaseOf(args[1], *token)
		if err != nil {
			return err
		}
		if !cmd.Flags().Changed("next") {
			return usagef("--next is required")
		}
		msg := &idnodev1.ReleaseWorkerRequest{Database: s.database, Pool: args[0], Worker: worker, Token: *token, Next: next}
		res, err := workersVia(s.askUntilAnswered).ReleaseWorker(ctx, msg)
		return s.out.value(err, res, "released")
	})
}
