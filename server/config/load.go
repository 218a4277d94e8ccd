package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/internal/nearest"
)

// Load puts the configuration together from flags (of AddFlags, parsed), the environment as
// os.Environ gives it, the file that either names, and the defaults, the first of which wins, and
// validates it. The error names every setting at fault, each on a line of its own.
func Load(fs *pflag.FlagSet, environ []string) (*Config, error) {
	c := Default()
	c.Tuning = failpoint.Tuned()
	from, err := sources(fs, environ)
	if err == nil {
		err = c.apply(settings(&c), from)
	}
	if err == nil {
		c.fillAdvertised()
		c.chooseWay()
		err = c.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return &c, nil
}

// sources are the places that name settings, the first one that counts first.
func sources(fs *pflag.FlagSet, environ []string) ([]source, error) {
	variables, err := fromEnvironment(environ)
	if err != nil {
		return nil, err
	}
	path, _ := variables.values[configFlag].(string)
	if flag := fs.Lookup(configFlag); flag.Changed {
		path = flag.Value.String()
	}
	inFile, err := fromFile(path)
	return []source{fromFlags(fs), variables, inFile}, err
}

// LoadLists returns the nodes that flags (of AddListFlags, parsed), environment and file
// list: the peers by tag, and those to join through. It is for a command beside the node.
func LoadLists(fs *pflag.FlagSet, environ []string) (peer map[string]string, join []string, err error) {
	from, err := sources(fs, environ)
	var c Config
	if err == nil {
		err = c.apply(slices.DeleteFunc(settings(&c), func(s setting) bool { return s.name != peerName && s.name != joinName }), from)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("config: %w", err)
	}
	return c.Peer, c.Join, nil
}

type source struct {
	where string
	// label is how the source writes the name of a setting.
	label  func(name string) string
	values map[string]any
}

func fromFlags(fs *pflag.FlagSet) source {
	s := source{where: "flag", label: func(name string) string { return "--" + name }, values: map[string]any{}}
	fs.Visit(func(f *pflag.Flag) {
		s.values[f.Name] = f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			s.values[f.Name] = list.GetSlice()
		}
	})
	return s
}

// fromEnvironment reads every IDNODE_ variable but those of the client.
func fromEnvironment(environ []string) (source, error) {
	s := source{where: "environment", label: EnvName, values: map[string]any{}}
	known := variables()
	for _, entry := range environ {
		variable, value, _ := strings.Cut(entry, "=")
		if name := known[variable]; name != "" {
			s.values[name] = value
		}
	}
	var problems []error
	unknown := UnknownVariables(environ)
	for _, variable := range slices.Sorted(maps.Keys(unknown)) {
		problems = append(problems, fmt.Errorf("%s: unknown variable %s%s", s.where, variable, unknown[variable]))
	}
	return s, errors.Join(problems...)
}

// variables returns the settings by their variables; those that only clients read have none.
func variables() map[string]string {
	byVariable := map[string]string{EnvName(configFlag): configFlag}
	for name := range names() {
		byVariable[EnvName(name)] = name
	}
	for _, name := range ClientVariables() {
		byVariable[name] = ""
	}
	return byVariable
}

// serviceLink matches the variables by which Kubernetes and Docker's links tell a container of
// services: of one that is named idnode, or idnode-quorum, they begin as ours do.
var serviceLink = regexp.MustCompile(`^IDNODE_([A-Z0-9_]+_)?(SERVICE_HOST=|SERVICE_PORT(_[A-Z0-9_]+)?=|PORT=[a-z]+://|PORT_[0-9]+_(TCP|UDP|SCTP)(_ADDR|_PORT|_PROTO)?=)`)

// UnknownVariables returns the variables of an environment, as os.Environ gives it, that
// look like ours and are not, each with words about the one that it may be a slip of.
func UnknownVariables(environ []string) map[string]string {
	known, unknown := variables(), map[string]string{}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if _, ok := known[name]; ok || !strings.HasPrefix(name, envPrefix) || serviceLink.MatchString(entry) {
			continue
		}
		unknown[name] = isOne(nearest.Of(name, slices.Collect(maps.Keys(known))))
	}
	return unknown
}

func isOne(near string) string {
	if near == "" {
		return ""
	}
	return "; " + near + " is one"
}

// fromFile reads a YAML file; no path is an empty one.
func fromFile(path string) (source, error) {
	if path == "" {
		return source{}, nil
	}
	s := source{where: "file " + path, label: func(name string) string { return name }, values: map[string]any{}}
	var values map[string]yaml.Node
	data, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(data, &values)
	}
	if err != nil && strings.Contains(err.Error(), "cannot unmarshal") {
		err = errors.New("it has no settings; a line looks like 'tag: A'") // The library's words are of Go's types.
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", s.where, err)
	}
	var problems []error
	known := names()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value := values[key]
		if !known[key] {
			problems = append(problems, fmt.Errorf("%s: unknown key %s%s", s.where, key, isOne(nearest.Of(key, slices.Collect(maps.Keys(known))))))
		} else if s.values[key], err = flatten(&value); err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", s.where, key, err))
		}
	}
	return s, errors.Join(problems...)
}

// flatten turns a YAML value into what a flag would give: a text, or texts; of a mapping, KEY=VALUE each. It takes
// what is written, not what YAML makes of it: 010 is ten, and TRUE may be a tag.
func flatten(value *yaml.Node) (any, error) {
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	if value.Kind != yaml.SequenceNode && value.Kind != yaml.MappingNode {
		return scalar(value)
	}
	list := make([]string, 0, len(value.Content))
	for i, entry := range value.Content {
		text, err := scalar(entry)
		if err != nil {
			return nil, err
		}
		if value.Kind == yaml.MappingNode && i%2 == 1 {
			list[i/2] += "=" + text
		} else {
			list = append(list, text)
		}
	}
	if value.Kind == yaml.MappingNode {
		slices.Sort(list)
	}
	return list, nil
}

func scalar(value *yaml.Node) (string, error) {
	switch {
	case value.Kind != yaml.ScalarNode:
		return "", fmt.Errorf("line %d must be a text, a number or a list of them", value.Line)
	case value.Tag == "!!null":
		return "", nil
	}
	return value.Value, nil
}

func names() map[string]bool {
	known := make(map[string]bool)
	for _, s := range settings(&Config{}) {
		known[s.name] = true
	}
	return known
}

// apply sets these settings of c. Of the sources that name one, the first wins.
func (c *Config) apply(all []setting, sources []source) error {
	var problems []error
	for _, s := range all {
		for _, from := range sources {
			value, given := from.values[s.name]
			if !given {
				continue
			}
			if err := s.set(value); err != nil {
				problems = append(problems, fmt.Errorf("%s: %s: %w", from.where, from.label(s.name), err))
			}
			break
		}
	}
	return errors.Join(problems...)
}

// chooseWay settles how a node comes in that was given both first nodes and members to join: the first nodes find
// each other, and all others join. So one configuration serves both kinds.
func (c *Config) chooseWay() {
	if len(c.Peer) == 0 || len(c.Join) == 0 {
		return
	}
	if _, first := c.Peer[c.Tag]; first {
		c.Join = nil
	} else {
		c.Peer, c.SingleNode = nil, false
	}
}

// maxTokenFile bounds what is read of a token; one has 26 bytes.
const maxTokenFile = 1 << 10

// JoinToken returns the token to join by. It is read only now: a node that has joined needs
// it no more, and the file may be gone. The error does not name the file, which may be the
// token itself by mistake.
func (c *Config) JoinToken() (string, error) {
	in := c.Stdin
	switch c.JoinTokenFile {
	case "":
		return "", nil
	case "-":
		if in == nil {
			return "", errors.New("config: join-token-file: the standard input is closed")
		}
	default:
		file, err := os.Open(c.JoinTokenFile)
		if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
			return "", fmt.Errorf("config: join-token-file: the file cannot be opened: %w", failed.Err)
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, maxTokenFile))
	if err != nil {
		return "", fmt.Errorf("config: join-token-file: %w", err)
	}
	token := strings.TrimSpace(strings.TrimPrefix(string(data), "\ufeff"))
	if token == "" {
		return "", errors.New("config: join-token-file: there is no token in it")
	}
	return token, nil
}
