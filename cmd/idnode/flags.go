package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/idnode/idnode/internal/nearest"
	"github.com/idnode/idnode/server/tlsconf"
)

const (
	defaultEndpoint = "127.0.0.1:7400"
	defaultTimeout  = 5 * time.Second
)

// clientFlags are the flags of every command that calls a server.
type clientFlags struct {
	endpoints  []string
	database   string
	timeout    time.Duration
	output     string
	verbose    bool
	cert       string
	key        string
	ca         string
	serverName string
}

// register adds the flags by which all of them find a server to f. Environment variables set
// the defaults, so a flag wins over them.
func (c *clientFlags) register(f *pflag.FlagSet, getenv func(string) string) {
	endpoints := []string{defaultEndpoint}
	if v := getenv("IDNODE_ENDPOINTS"); v != "" {
		endpoints = strings.Split(v, ",")
	}
	f.StringSliceVar(&c.endpoints, "endpoint", endpoints, "gRPC address of a node; several are tried in order (IDNODE_ENDPOINTS)")
	f.DurationVar(&c.timeout, "timeout", defaultTimeout, "how long to wait for an answer, over all endpoints")
	f.BoolVarP(&c.verbose, "verbose", "v", false, "if a call fails, list what each endpoint said")
	c.registerTLS(f, getenv)
}

// registerTLS adds the flags of certificates.
func (c *clientFlags) registerTLS(f *pflag.FlagSet, getenv func(string) string) {
	f.StringVar(&c.cert, "tls-cert", getenv("IDNODE_TLS_CERT"), "file with this client's certificate (IDNODE_TLS_CERT)")
	f.StringVar(&c.key, "tls-key", getenv("IDNODE_TLS_KEY"), "file with its key (IDNODE_TLS_KEY)")
	f.StringVar(&c.ca, "tls-ca", getenv("IDNODE_TLS_CA"),
		"file with the CA that signed the servers' certificates; turns TLS on (IDNODE_TLS_CA)")
	f.StringVar(&c.serverName, "tls-server-name", getenv("IDNODE_TLS_SERVER_NAME"),
		"name the server's certificate must have instead of the endpoint's host (IDNODE_TLS_SERVER_NAME)")
}

// remote is the code of a command that calls a server.
type remote func(ctx context.Context, s *clusterClient, args []string) error

// clientCommand is client or clusterWide.
type clientCommand = func(cmd *cobra.Command, run remote) *cobra.Command

// client makes cmd a command that calls a server about one database.
func (a *app) client(cmd *cobra.Command, run remote) *cobra.Command {
	var flags clientFlags
	cmd.Flags().StringVar(&flags.database, "database", a.getenv("IDNODE_DATABASE"), `database whose counters are used; empty means "default" (IDNODE_DATABASE)`)
	return a.caller(cmd, &flags, run)
}

// clusterWide makes cmd a command that calls a server about the whole cluster.
func (a *app) clusterWide(cmd *cobra.Command, run remote) *cobra.Command {
	return a.caller(cmd, new(clientFlags), run)
}

func (a *app) caller(cmd *cobra.Command, flags *clientFlags, run remote) *cobra.Command {
	cmd.Flags().StringVarP(&flags.output, "output", "o", "text", "text; wide: all columns of a table; or json: one object a line")
	connection := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.register(connection, a.getenv)
	cmd.Flags().AddFlagSet(connection)
	cmd.SetUsageFunc(func(shown *cobra.Command) error {
		if shown != cmd {
			return shown.Root().UsageFunc()(shown)
		}
		return usageApart(cmd, "Connection", connection)
	})
	cmd.RunE = a.enter(func(cmd *cobra.Command, args []string) error {
		s, err := flags.clusterClient(a)
		if err != nil {
			return &usageError{err: err}
		}
		defer s.close()
		return errors.Join(run(cmd.Context(), s, args), s.out.flush())
	})
	return cmd
}

// clusterClient checks the flags and returns a client that has not dialled yet.
func (c *clientFlags) clusterClient(a *app) (*clusterClient, error) {
	if c.timeout <= 0 {
		return nil, fmt.Errorf("--timeout must be above zero, not %s", c.timeout)
	}
	if !utf8.ValidString(c.database) {
		return nil, fmt.Errorf("INVALID_NAME: --database %.100q is not UTF-8", c.database)
	}
	endpoints, err := checkEndpoints(c.endpoints)
	if err != nil {
		return nil, err
	}
	out, err := newPrinter(a.stdout, c.output)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := c.tlsConfig()
	if err != nil {
		return nil, err
	}
	return &clusterClient{endpoints: endpoints, database: c.database, timeout: c.timeout, verbose: c.verbose, tls: tlsConfig, out: out}, nil
}

// usageApart shows some of a command's flags under a heading of their own.
func usageApart(cmd *cobra.Command, heading string, apart *pflag.FlagSet) error {
	hide := func(hidden bool) { apart.VisitAll(func(f *pflag.Flag) { f.Hidden = hidden }) }
	hide(true)
	err := cmd.Root().UsageFunc()(cmd)
	hide(false)
	fmt.Fprintf(cmd.OutOrStderr(), "\n%s:\n%s", heading, apart.FlagUsages())
	return err
}

// badFlag words cobra's refusal of a flag.
func badFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	name := unknown.GetSpecifiedName()
	if name == "database" {
		return fmt.Errorf("%w: '%s' is about no single database", err, cmd.CommandPath())
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := nearest.Of(name, names); near != "" {
		return fmt.Errorf("%w, did you mean --%s?", err, near)
	}
	return err
}

// checkEndpoints refuses what is no HOST:PORT.
func checkEndpoints(given []string) ([]string, error) {
	var endpoints []string
	for _, e := range given {
		e = strings.TrimSpace(e)
		_, port, err := net.SplitHostPort(e)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 {
			return nil, fmt.Errorf("--endpoint (IDNODE_ENDPOINTS) must be HOST:PORT, not %q", e)
		}
		endpoints = append(endpoints, e)
	}
	if len(endpoints) == 0 {
		return nil, errors.New("--endpoint must not be empty")
	}
	return endpoints, nil
}

// tlsConfig returns nil unless a TLS flag is set. The files are those of a node's own flags, so
// inside a container the same environment serves both.
func (c *clientFlags) tlsConfig() (*tls.Config, error) {
	if c.cert == "" && c.key == "" && c.ca == "" && c.serverName == "" {
		return nil, nil
	}
	material, err := tlsconf.LoadClient(tlsconf.Files{Cert: c.cert, Key: c.key, CA: c.ca})
	if err != nil {
		return nil, err
	}
	return material.Client(c.serverName), nil
}

// cutEnv splits one entry of an environment.
func cutEnv(entry string) (key, value string, ok bool) {
	return strings.Cut(entry, "=")
}

// listFlags are the flags of the commands that list.
type listFlags struct {
	prefix string
	limit  int64
	stale  bool
}

func (l *listFlags) register(f *pflag.FlagSet) {
	f.StringVar(&l.prefix, "prefix", "", "only names that begin with this, in any case")
	l.registerPages(f)
}

// registerPages adds the flags of lists that are not of names.
func (l *listFlags) registerPages(f *pflag.FlagSet) {
	f.Int64Var(&l.limit, "limit", 0, "at most this many; 0 lists all")
	registerStale(f, &l.stale)
}

func (l *listFlags) check() error {
	if l.limit < 0 {
		return usagef("--limit must not be negative")
	}
	return nil
}

func registerStale(f *pflag.FlagSet, stale *bool) {
	f.BoolVar(stale, "stale", false, "what the node asked knows by itself: needs no quorum, may lag behind")
}

// requestFlags are the flags of the commands that take a request id.
type requestFlags struct {
	id    string
	since uint64
	flags *pflag.FlagSet
}

func (r *requestFlags) register(f *pflag.FlagSet) {
	r.flags = f
	f.StringVar(&r.id, "request-id", "",
		"the call counts once per request id, however often it is repeated; 1 to 64 bytes; random unless given")
	f.Uint64Var(&r.since, "retry-since", 0,
		"on a retry: the newest log index seen before the first try; refuses the retry if the first try may have been forgotten")
}

// request returns the request id to send with a call that goes through the log.
func (r *requestFlags) request() (*request, error) {
	if r.flags.Changed("request-id") && (r.id == "" || len(r.id) > 64 || !utf8.ValidString(r.id)) {
		return nil, usagef("--request-id must have 1 to 64 bytes of UTF-8, not %.100q", r.id)
	}
	if !r.flags.Changed("retry-since") {
		return newRequest(r.id, nil), nil
	}
	if r.id == "" {
		return nil, usagef("--retry-since needs the --request-id of the first try")
	}
	return newRequest(r.id, &r.since), nil
}

// given returns the request id only if the caller named one: for calls that need none.
func (r *requestFlags) given() (*request, error) {
	req, err := r.request()
	if r.id == "" {
		return nil, err
	}
	return req, err
}
