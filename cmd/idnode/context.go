package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/idnode/idnode/internal/nearest"
	"github.com/idnode/idnode/transfer"
)

func newContextCommand(a *app) *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "context",
		Short: "Saved connections: endpoints and TLS files, under a name",
		Long: `A context is a saved connection with the id of its cluster. --context NAME, or
IDNODE_CONTEXT, selects it; flags override its values. The context of 'context use'
applies where neither --context, --endpoint nor a variable of them is set. Commands that ask before they change the
cluster, or change the cluster itself, name the context.

Contexts are saved in idnode/contexts.yaml below XDG_CONFIG_HOME or ~/.config, with
the paths of keys, without the keys.`,
	},
		a.contextCommand("list", "List the contexts: name, endpoints, cluster, the one in use", func(c *contexts, _ string) (string, error) {
			var b strings.Builder
			var rows [][2]string
			for _, name := range c.names() {
				saved, row := c.Contexts[name], strings.Join(c.Contexts[name].Endpoints, ",")
				if saved.ClusterID != "" {
					row += "  cluster " + saved.ClusterID
				}
				used := map[bool]string{true: "  in use"}[name == c.Current]
				rows = append(rows, [2]string{name, row + used})
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
		a.contextCommand("use [NAME]", "Use a context from now on; without a name, none", func(c *contexts, name string) (string, error) {
			c.Current = name
			return "", c.save()
		}),
		newContextDeleteCommand(a))
}

func newContextDeleteCommand(a *app) *cobra.Command {
	var sure *confirmation
	cmd := a.contextCommand("delete NAME", "Forget a context; its files stay", func(c *contexts, name string) (string, error) {
		if err := sure.ask("Forgets the context " + contextText(name, c.Contexts[name]) + "."); err != nil {
			return "", err
		}
		delete(c.Contexts, name)
		if c.Current == name {
			c.Current = ""
		}
		return "", c.save()
	})
	sure = a.asks(cmd)
	return cmd
}

// contextText says where a context leads.
func contextText(name string, c connection) string {
	return fmt.Sprintf("%s of %s", quote(name), cmp.Or(strings.Join(c.Endpoints, ", "), "no endpoints"))
}

// contextCommand makes a command about the context that its argument may name. run returns what is printed.
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
		Short:   "Save a connection, from these flags or else the variables, and its cluster's id",
		Example: "  idnode context save prod --endpoint 10.0.0.1:7400,10.0.0.2:7400 --tls-ca ca.crt --tls-cert me.crt --tls-key me.key",
		Args:    cobra.ExactArgs(1),
	}
	given.register(cmd.Flags(), a.getenv)
	sure := a.asks(cmd)
	cmd.RunE = a.enter(func(cmd *cobra.Command, args []string) (err error) {
		if !contextName.MatchString(args[0]) {
			return usagef("a context's name has 1 to 64 letters, digits, dots, dashes and underscores, not %s", quote(args[0]))
		}
		if !given.saysWhere(cmd.Flags(), a.getenv) {
			return usagef("--endpoint is required: the address of a node")
		}
		s := clusterClient{timeout: defaultTimeout, stderr: a.stderr}
		if err = given.check(); err == nil {
			s.tls, err = given.tlsConfig()
		}
		for _, file := range []*string{&given.CA, &given.Cert, &given.Key} {
			if err == nil && *file != "" {
				*file, err = filepath.Abs(*file)
			}
		}
		if err != nil {
			return &usageError{err}
		}
		if given.ClusterID == "" {
			s.connection = given
			given.ClusterID, err = s.askCluster(cmd.Context(), given.Endpoints)
			s.close()
			switch {
			case reasonOf(err) == reasonOtherCluster:
				return err
			case given.ClusterID == "":
				fmt.Fprintln(a.stderr, "idnode: no endpoint told its cluster's id: save the context again later, or with --cluster-id")
			}
		}
		c, err := a.contexts() // Other commands may have saved theirs while this one asked.
		if err != nil {
			return err
		}
		if saved, ok := c.Contexts[args[0]]; ok && !reflect.DeepEqual(saved, given) {
			if _, err := c.get(args[0]); err != nil {
				return err
			}
			question := fmt.Sprintf("Replaces the context %s by one of %s.", contextText(args[0], saved), strings.Join(given.Endpoints, ", "))
			if err := sure.ask(question); err != nil {
				return err
			}
			if c, err = a.contexts(); err != nil {
				return err
			}
		}
		c.Contexts[args[0]] = given
		return c.save()
	})
	return cmd
}

// contexts is the file of saved connections.
type contexts struct {
	path string
	// Current is the one that commands take which say nothing; empty for none.
	Current  string                `yaml:"current,omitempty"`
	Contexts map[string]connection `yaml:"contexts"`
}

var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// contexts reads the file; there may be none yet.
func (a *app) contexts() (*contexts, error) {
	c := &contexts{Contexts: map[string]connection{}}
	folder := a.getenv("XDG_CONFIG_HOME")
	if home := cmp.Or(a.getenv("HOME"), a.getenv("USERPROFILE")); folder == "" && home != "" {
		folder = filepath.Join(home, ".config")
	}
	if folder == "" {
		return c, nil
	}
	c.path = filepath.Join(folder, "idnode", "contexts.yaml")
	data, err := os.ReadFile(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, &usageError{err}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return nil, usagef("%s: %s", c.path, plainly(err.Error()))
	}
	return c, nil
}

// get refuses a context that this program knows only in part.
func (c *contexts) get(name string) (connection, error) {
	saved, ok := c.Contexts[name]
	for key := range saved.Newer {
		return saved, usagef("the context %s has a key that this program does not know: %s", quote(name), key)
	}
	if ok {
		return saved, nil
	}
	if near := nearest.Of(name, c.names()); near != "" {
		return saved, usagef("there is no context %s, did you mean %s?", quote(name), quote(near))
	}
	return saved, usagef("there is no context %s; 'idnode context list' has all", quote(name))
}

func (c *contexts) names() []string { return slices.Sorted(maps.Keys(c.Contexts)) }

// save writes the file, which its owner alone can read.
func (c *contexts) save() error {
	if c.path == "" {
		return usagef("contexts are kept below XDG_CONFIG_HOME or HOME, and neither is set")
	}
	data, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}
	return transfer.WriteFile(c.path, func(file *os.File) error {
		_, err := file.Write(data)
		return err
	})
}
