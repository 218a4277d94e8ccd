package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

func newContextCommand(a *app) *cobra.Command {
	return a.group(&cobra.Command{
		Use:     "context",
		GroupID: groupCluster,
		Short:   "Saved connections: endpoints and TLS files, under a name",
		Long: `A context is a saved connection. --context NAME, or IDNODE_CONTEXT, takes it, but for
what flags say. The one of 'context use' is taken where neither --context, --endpoint
nor a variable of them says where to go. Commands that ask before they change the
cluster, or change the cluster itself, name the context.

They are in idnode/contexts.yaml below XDG_CONFIG_HOME or ~/.config: the paths of
keys, and no key.`,
	},
		a.contextCommand("list", "List the contexts: name, endpoints, the one in use", func(c *contexts, _ string) (string, error) {
			var b strings.Builder
			var rows [][2]string
			for _, name := range c.names() {
				used := map[bool]string{true: "  in use"}[name == c.Current]
				rows = append(rows, [2]string{name, strings.Join(c.Contexts[name].Endpoints, ",") + used})
			}
			if fields(&b, rows); rows == nil && a.toTerminal {
				b.WriteString("(none)\n")
			}
			return b.String(), nil
		}),
		a.contextCommand("show NAME", "Show a context", func(c *contexts, name string) (string, error) {
			text, err := yaml.Marshal(c.Contexts[name])
			return string(text), err
		}),
		newContextSaveCommand(a),
		a.contextCommand("use [NAME]", "Take a context from now on; without a name, none", func(c *contexts, name string) (string, error) {
			c.Current = name
			return "", c.save()
		}),
		a.contextCommand("delete NAME", "Forget a context; its files stay", func(c *contexts, name string) (string, error) {
			delete(c.Contexts, name)
			if c.Current == name {
				c.Current = ""
			}
			return "", c.save()
		}))
}

// contextCommand makes a command about the context that its argument names, if it takes one. run
// returns what is printed.
func (a *app) contextCommand(use, short string, run func(c *contexts, name string) (string, error)) *cobra.Command {
	name, _, takes := strings.Cut(use, " ")
	cmd := &cobra.Command{Use: use, Short: short, Example: "  idnode context " + name}
	if takes {
		cmd.Example, cmd.ValidArgsFunction = cmd.Example+" prod", a.completeContexts
	}
	cmd.RunE = a.enter(func(_ *cobra.Command, args []string) error {
		c, err := a.contexts()
		if err == nil && len(args) > 0 {
			_, err = c.get(args[0])
		}
		if err != nil {
			return err
		}
		text, err := run(c, strings.Join(args, ""))
		if err == nil {
			_, err = fmt.Fprint(a.stdout, text)
		}
		return err
	})
	return cmd
}

// completeContexts makes shells complete the names of contexts.
func (a *app) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	c, err := a.contexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return c.names(), cobra.ShellCompDirectiveNoFileComp
}

func newContextSaveCommand(a *app) *cobra.Command {
	var given connection
	cmd := &cobra.Command{
		Use:     "save NAME",
		Short:   "Save a connection: that of these flags, else of the variables",
		Example: "  idnode context save prod --endpoint 10.0.0.1:7400,10.0.0.2:7400 --tls-ca ca.crt --tls-cert me.crt --tls-key me.key",
		Args:    cobra.ExactArgs(1),
	}
	given.register(cmd.Flags(), a.getenv)
	cmd.RunE = a.enter(func(cmd *cobra.Command, args []string) (err error) {
		if !contextName.MatchString(args[0]) {
			return usagef("a context's name has 1 to 64 letters, digits, dots, dashes and underscores, not %s", quote(args[0]))
		}
		if !given.saysWhere(cmd.Flags(), a.getenv) {
			return usagef("--endpoint is required: where the cluster is")
		}
		if given.Endpoints, err = checkEndpoints(given.Endpoints); err == nil {
			_, err = given.tlsConfig()
		}
		for _, file := range []*string{&given.CA, &given.Cert, &given.Key} {
			if err == nil && *file != "" {
				*file, err = filepath.Abs(*file)
			}
		}
		if err != nil {
			return &usageError{err: err}
		}
		c, err := a.contexts()
		if err != nil {
			return err
		}
		c.Contexts[args[0]] = given
		return c.save()
	})
	return cmd
}
