package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/internal/bench"
)

type benchOptions struct {
	cfg        bench.Config
	cluster    int
	serveFlags []string
}

func newBenchCommand(a *app) *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Put a load on a cluster and measure it",
		Long: `Lets callers take ids for a while and prints how many, how fast, and what failed.
The callers are spread over the endpoints that answer. It fails if an id came twice.

Identities and ranges are taken under names of their own, which stay in the
cluster, in the database bench. With --cluster a cluster of real processes with data in a temporary
folder is started first, and ended afterwards.

  identity      one call takes --batch consecutive values of one of --names identities
  server-side   one call takes --batch server-side ids
  range         one call reserves a range of --batch numbers
  series        one call takes the numbers of --batch documents from one of --names series
  guid          one call makes --batch GUIDs
  echo          an empty gRPC call to the same server, to compare with`,
		Example: `  idnode bench --cluster 3 --op identity --callers 64
  idnode bench --op identity --via stream --callers 512 --batch 100
  idnode bench --op server-side --batch 1000 -o json`,
	}
	f := cmd.Flags()
	f.StringVar(&o.cfg.Op, "op", bench.Identity, "what to measure: "+strings.Join(bench.Ops(), ", "))
	f.StringVar(&o.cfg.Via, "via", bench.Unary, "how to call: "+strings.Join(bench.Vias(), ", "))
	f.IntVar(&o.cfg.Callers, "callers", 64, "how many calls are in flight at a time")
	f.IntVar(&o.cfg.Batch, "batch", 1, "how many ids one call takes")
	f.IntVar(&o.cfg.Names, "names", 1, "over how many names the calls are spread")
	f.DurationVar(&o.cfg.Duration, "duration", 10*time.Second, "how long")
	f.IntVar(&o.cluster, "cluster", 0, "start a cluster of this many processes first, 1 to 9")
	f.StringArrayVar(&o.serveFlags, "serve-flag", nil,
		"with --cluster: one more flag for its processes, such as --log-level=debug; several allowed")
	a.client(cmd, func(ctx context.Context, s *clusterClient, _ []string) error {
		switch {
		case f.Changed("cluster") && (o.cluster < 1 || o.cluster > maxDevNodes):
			return usagef("--cluster must be 1 to %d, not %d", maxDevNodes, o.cluster)
		case len(o.serveFlags) > 0 && o.cluster == 0:
			return usagef("--serve-flag goes only with --cluster")
		case f.Changed("cluster") && f.Changed("endpoint"):
			return usagef("--cluster starts a cluster of its own: leave out --endpoint")
		}
		return o.run(ctx, a, s)
	})
	database := f.Lookup("database")
	database.DefValue, database.Usage = "bench", "database whose counters are used"
	_ = database.Value.Set(database.DefValue) // A text takes any.
	return cmd
}

func (o *benchOptions) run(ctx context.Context, a *app, s *clusterClient) error {
	o.cfg.Database = s.database
	o.cfg.Prefix = "bench-" + uuid.NewString() + "-"
	if err := o.cfg.Validate(); err != nil {
		return &usageError{err}
	}
	if o.cluster != 0 {
		c, err := startBenchCluster(ctx, a.stderr, o.cluster, o.serveFlags)
		if err != nil {
			return err
		}
		defer c.end()
		s.connection, s.tls = connection{Endpoints: c.endpoints}, nil
	} else {
		s.nameContext()
	}
	if err := o.connect(ctx, s); err != nil {
		return err
	}
	if o.cfg.Via == bench.ViaClient {
		c, err := client.New(ctx, client.Config{Endpoints: s.Endpoints, ClusterID: s.ClusterID, Database: s.database, TLS: s.tls})
		if err != nil {
			return &unavailableError{err}
		}
		defer c.Close(context.WithoutCancel(ctx))
		o.cfg.Client = c
	}
	report, err := o.measure(ctx, a.stderr)
	printReport(s.out, report, err == nil && report.IDsPerS > 0)
	return err
}

// connect connects to the endpoints, and warns of those that are not reached: the others are measured.
func (o *benchOptions) connect(ctx context.Context, s *clusterClient) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.settle(ctx); err != nil {
		return err
	}
	o.cfg.Conns = nil
	var unreached error
	for _, endpoint := range s.Endpoints {
		conn, err := s.connect(ctx, endpoint)
		if err == nil {
			o.cfg.Conns = append(o.cfg.Conns, conn)
			continue
		}
		if len(s.Endpoints) > 1 {
			fmt.Fprintf(s.stderr, "idnode: warning: it is measured without %s: %s\n", endpoint, printable(describe(err)))
		}
		unreached = &unavailableError{err}
	}
	if len(o.cfg.Conns) > 0 {
		return nil
	}
	return unreached
}

// measure runs the load and shows each second how far it is.
func (o *benchOptions) measure(ctx context.Context, progress io.Writer) (bench.Report, error) {
	var p bench.Progress
	var showing sync.WaitGroup
	done := make(chan struct{})
	showing.Go(func() { showProgress(progress, &p, done) })
	report, err := bench.Run(ctx, o.cfg, &p)
	close(done)
	showing.Wait()
	return report, err
}

func showProgress(w io.Writer, p *bench.Progress, done <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var before int64
	for second := 1; ; second++ {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		calls, ids, failed := p.Counts()
		fmt.Fprintf(w, "%3d s  %d calls/s  %d ids  %d failed\n", second, calls-before, ids, failed)
		before = calls
	}
}

func printReport(out *printer, r bench.Report, unique bool) {
	if out.json {
		out.fail(json.NewEncoder(out.w).Encode(r))
		return
	}
	rows := [][2]string{
		{"operation", fmt.Sprintf("%s via %s, %d callers, batches of %d, %d names", r.Op, r.Via, r.Callers, r.Batch, r.Names)},
		{"time", fmt.Sprintf("%.1f s", r.Seconds)},
		{"calls/s", fmt.Sprintf("%.0f", r.CallsPerS)},
		{"ids/s", fmt.Sprintf("%.0f", r.IDsPerS)},
		{"p50", microseconds(r.P50us)},
		{"p99", microseconds(r.P99us)},
		{"p99.9", microseconds(r.P999us)},
		{"max", microseconds(r.MaxUs)},
	}
	for _, reason := range slices.Sorted(maps.Keys(r.ErrorReasons)) {
		rows = append(rows, [2]string{"failed", fmt.Sprintf("%d %s", r.ErrorReasons[reason], reason)})
	}
	if unique {
		rows = append(rows, [2]string{"checked", "no id came twice"})
	}
	fields(out.w, rows)
}

func microseconds(us int64) string { return (time.Duration(us) * time.Microsecond).String() }
