package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/nearest"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/tlsconf"
)

const (
	defaultEndpoint = "127.0.0.1:7400"
	defaultTimeout  = 5 * time.Second
)

// connection says how a cluster is reached. A context is one that is saved under a name.
type connection struct {
	Endpoints  []string `yaml:"endpoint,flow"`
	ClusterID  string   `yaml:"cluster-id,omitempty"`
	CA         string   `yaml:"tls-ca,omitempty"`
	Cert       string   `yaml:"tls-cert,omitempty"`
	Key        string   `yaml:"tls-key,omitempty"`
	ServerName string   `yaml:"tls-server-name,omitempty"`
	// Newer are a saved connection's keys that this program does not know.
	Newer map[string]any `yaml:",inline"`
}

// endpointsVariable and clusterIDVariable have the defaults of --endpoint and --cluster-id.
const (
	endpointsVariable = "IDNODE_ENDPOINTS"
	clusterIDVariable = "IDNODE_CLUSTER_ID"
)

// register adds the flags of c. Environment variables set the defaults, so a flag wins over them.
func (c *connection) register(f *pflag.FlagSet, getenv func(string) string) {
	endpoints := strings.Split(cmp.Or(getenv(endpointsVariable), defaultEndpoint), ",")
	f.StringSliceVar(&c.Endpoints, "endpoint", endpoints, "gRPC address of a node; several are tried in order ("+endpointsVariable+")")
	f.StringVar(&c.ClusterID, "cluster-id", getenv(clusterIDVariable),
		"the cluster's id: nodes of another cluster refuse the call ("+clusterIDVariable+")")
	c.registerTLS(f, getenv)
}

func (c *connection) registerTLS(f *pflag.FlagSet, getenv func(string) string) {
	add := func(value *string, name, usage string) {
		variable := config.EnvName(name)
		f.StringVar(value, name, getenv(variable), usage+" ("+variable+")")
	}
	add(&c.CA, "tls-ca", "file with the CA that signed the servers' certificates; turns TLS on")
	add(&c.Cert, "tls-cert", "file with this client's certificate")
	add(&c.Key, "tls-key", "file with its key")
	add(&c.ServerName, "tls-server-name", "name the server's certificate must have instead of the endpoint's host")
}

// saysWhere says whether flags or variables name the cluster.
func (c *connection) saysWhere(f *pflag.FlagSet, getenv func(string) string) bool {
	return f.Changed("endpoint") || getenv(endpointsVariable) != ""
}

// tlsConfig returns nil unless a TLS flag is set. The files are those of a node's own flags, so
// inside a container the same environment serves both.
func (c *connection) tlsConfig() (*tls.Config, error) {
	if c.Cert == "" && c.Key == "" && c.CA == "" && c.ServerName == "" {
		return nil, nil
	}
	material, err := tlsconf.LoadClient(tlsconf.Files{Cert: c.Cert, Key: c.Key, CA: c.CA})
	if err != nil {
		return nil, err
	}
	return material.Client(c.ServerName), nil
}

// register adds the flags by which all commands find a server to f.
func (s *clusterClient) register(f *pflag.FlagSet, getenv func(string) string) {
	f.StringVar(&s.context, "context", getenv("IDNODE_CONTEXT"), "a saved connection: see 'idnode context' (IDNODE_CONTEXT)")
	f.DurationVar(&s.timeout, "timeout", defaultTimeout, "how long to wait for an answer, over all endpoints")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "if a call fails, list the error of each endpoint")
	s.connection.register(f, getenv)
}

// takeContext takes the context that is asked for or, if nothing says where to go, the one in use.
// Flags win over its values.
func (s *clusterClient) takeContext(a *app, f *pflag.FlagSet) error {
	if s.context == "" && s.saysWhere(f, a.getenv) {
		return nil
	}
	all, err := a.contexts()
	if err != nil {
		return err
	}
	if s.context = cmp.Or(s.context, all.Current); s.context == "" {
		return nil
	}
	saved, err := all.get(s.context)
	take := func(flag string, value *string, saved string) {
		if !f.Changed(flag) {
			*value = saved
		}
	}
	take("cluster-id", &s.ClusterID, saved.ClusterID)
	take("tls-ca", &s.CA, saved.CA)
	take("tls-cert", &s.Cert, saved.Cert)
	take("tls-key", &s.Key, saved.Key)
	take("tls-server-name", &s.ServerName, saved.ServerName)
	if !f.Changed("endpoint") {
		s.Endpoints = saved.Endpoints
	}
	return err
}

type remote func(ctx context.Context, s *clusterClient, args []string) error

// clientCommand is client or clusterWide.
type clientCommand = func(cmd *cobra.Command, run remote) *cobra.Command

// client makes cmd a command that calls a server about one database.
func (a *app) client(cmd *cobra.Command, run remote) *cobra.Command {
	s := new(clusterClient)
	cmd.Flags().StringVar(&s.database, "database", a.getenv("IDNODE_DATABASE"),
		`database whose counters are used; empty means "default" (IDNODE_DATABASE)`)
	_ = cmd.RegisterFlagCompletionFunc("database", a.completeNames(s, listedDatabases)) // The flag is there.
	return a.caller(cmd, s, run)
}

// clusterWide makes cmd a command that calls a server about the whole cluster.
func (a *app) clusterWide(cmd *cobra.Command, run remote) *cobra.Command {
	return a.caller(cmd, new(clusterClient), run)
}

func (a *app) caller(cmd *cobra.Command, s *clusterClient, run remote) *cobra.Command {
	cmd.Flags().StringVarP(&s.output, "output", "o", "text", "text; wide: all columns of a table; or json: one object a line")
	connection := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.register(connection, a.getenv)
	cmd.Flags().AddFlagSet(connection)
	cmd.SetUsageFunc(func(shown *cobra.Command) error {
		if shown != cmd {
			return shown.Root().UsageFunc()(shown)
		}
		return usageApart(cmd, "Connection", connection)
	})
	cmd.ValidArgsFunction = a.completeArgs(s)
	cmd.RunE = a.enter(func(cmd *cobra.Command, args []string) error {
		if err := s.prepare(a, cmd.Flags()); err != nil {
			return &usageError{err}
		}
		defer s.close()
		return errors.Join(run(cmd.Context(), s, args), s.out.flush())
	})
	return cmd
}

// prepare checks the flags. Nothing is dialled yet.
func (s *clusterClient) prepare(a *app, f *pflag.FlagSet) (err error) {
	if err := s.takeContext(a, f); err != nil {
		return err
	}
	if s.timeout <= 0 {
		return fmt.Errorf("--timeout must be above zero, not %s", s.timeout)
	}
	if !utf8.ValidString(s.database) {
		return fmt.Errorf("INVALID_NAME: --database %.100q is not UTF-8", s.database)
	}
	if err := s.connection.check(); err != nil {
		return err
	}
	if s.out, err = newPrinter(a.stdout, s.output); err != nil {
		return err
	}
	s.out.colour, s.stderr = a.mayPaint(), a.stderr
	s.consistency = idnodev1.Consistency_CONSISTENCY_LINEARIZABLE
	if stale, _ := f.GetBool("stale"); stale { // Few commands have it.
		s.consistency = idnodev1.Consistency_CONSISTENCY_STALE
	}
	s.tls, err = s.tlsConfig()
	return err
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

// badFlag words cobra's refusal of a flag. After a misspelt command its flags are unknown too.
func badFlag(cmd *cobra.Command, err error) error {
	if cmd.HasSubCommands() && len(argumentsIn(cmd.Use)) == 0 && cmd.Flags().NArg() > 0 {
		return unknownCommand(cmd, cmd.Flags().Arg(0))
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	name := unknown.GetSpecifiedName()
	if name == "database" {
		return fmt.Errorf("%w: '%s' does not take a database", err, cmd.CommandPath())
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := nearest.Of(name, names); near != "" {
		return fmt.Errorf("%w, did you mean --%s?", err, near)
	}
	return err
}

// check refuses endpoints that are no HOST:PORT, and what is no cluster's id.
func (c *connection) check() error {
	for i, e := range c.Endpoints {
		c.Endpoints[i] = strings.TrimSpace(e)
		if err := config.CheckAddress(c.Endpoints[i], false); err != nil {
			return fmt.Errorf("--endpoint (IDNODE_ENDPOINTS): %w", err)
		}
	}
	if len(c.Endpoints) == 0 {
		return errors.New("--endpoint must not be empty")
	}
	if err := config.CheckClusterID(c.ClusterID); err != nil {
		return fmt.Errorf("--cluster-id (%s): %w", clusterIDVariable, err)
	}
	return nil
}

type listFlags struct {
	prefix string
	limit  int64
}

func (l *listFlags) register(f *pflag.FlagSet) {
	f.StringVar(&l.prefix, "prefix", "", "only names that begin with this, in any case")
	l.registerPages(f)
}

// registerPages adds the flags of lists that are not of names.
func (l *listFlags) registerPages(f *pflag.FlagSet) {
	f.Int64Var(&l.limit, "limit", 0, "at most this many; 0 lists all")
	staleFlag(f)
}

func (l *listFlags) check() error {
	if l.limit < 0 {
		return usagef("--limit must not be negative")
	}
	return nil
}

func staleFlag(f *pflag.FlagSet) {
	f.Bool("stale", false, "read the state of the node asked: needs no quorum, may lag behind")
}

// reading adds --stale to a command.
func reading(cmd *cobra.Command) *cobra.Command {
	staleFlag(cmd.Flags())
	return cmd
}
