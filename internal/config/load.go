package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// delimiter joins the names of nested keys in koanf. No setting is nested, so
// it is a character that no name holds.
const delimiter = "\x00"

// Load puts the configuration together from flags (of AddFlags, parsed), the
// environment as os.Environ gives it, the file that either names, and the
// defaults; then it fills in the advertised addresses and validates. The error
// names every setting at fault, each on a line of its own.
func Load(fs *pflag.FlagSet, environ []string) (*Config, error) {
	c, err := load(fs, environ)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return c, nil
}

func load(fs *pflag.FlagSet, environ []string) (*Config, error) {
	flags, err := fromFlags(fs)
	if err != nil {
		return nil, err
	}
	variables, err := fromEnvironment(environ)
	if err != nil {
		return nil, err
	}
	path, err := filePath(fs, variables)
	if err != nil {
		return nil, err
	}
	inFile, err := fromFile(path)
	if err != nil {
		return nil, err
	}
	c := Default()
	if err := c.apply(inFile, variables, flags); err != nil {
		return nil, err
	}
	if err := c.findTag(); err != nil {
		return nil, err
	}
	c.fillAdvertised()
	c.chooseWay()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &c, nil
}

// source is what one place says.
type source struct {
	// where names the place in errors.
	where  string
	values map[string]any
}

// read has a koanf provider read one place into a source.
func read(where string, provider koanf.Provider, parser koanf.Parser) (source, error) {
	k := koanf.New(delimiter)
	if err := k.Load(provider, parser); err != nil {
		return source{}, fmt.Errorf("%s: %w", where, err)
	}
	return source{where: where, values: k.Raw()}, nil
}

// fromFlags reads the flags that were given.
func fromFlags(fs *pflag.FlagSet) (source, error) {
	known := names()
	return read("flag", posflag.ProviderWithFlag(fs, delimiter, nil, func(f *pflag.Flag) (string, any) {
		if !known[f.Name] {
			return "", nil
		}
		if slice, ok := f.Value.(pflag.SliceValue); ok {
			return f.Name, slice.GetSlice()
		}
		return f.Name, f.Value.String()
	}), nil)
}

// fromEnvironment reads every IDNODE_ variable but those of the client.
func fromEnvironment(environ []string) (source, error) {
	byVariable := variables()
	var unknown []error
	s, err := read("environment", env.Provider("", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(variable, value string) (string, any) {
			name, ok := byVariable[variable]
			if !ok {
				unknown = append(unknown, fmt.Errorf("environment: unknown variable %s", variable))
			}
			return name, value
		},
	}), nil)
	return s, errors.Join(append([]error{err}, unknown...)...)
}

// variables returns the settings by their variables; those that only clients read have
// none.
func variables() map[string]string {
	byVariable := map[string]string{envName(configFlag): configFlag}
	for name := range names() {
		byVariable[envName(name)] = name
	}
	for _, name := range ClientVariables() {
		byVariable[name] = ""
	}
	return byVariable
}

// UnknownVariables returns the variables of an environment, as os.Environ gives it, that
// look like ours and are not: each with the one that it may be a slip of, or "".
func UnknownVariables(environ []string) map[string]string {
	known, unknown := variables(), map[string]string{}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if _, ok := known[name]; ok || !strings.HasPrefix(name, envPrefix) {
			continue
		}
		unknown[name] = ""
		for _, other := range []string{name + "S", strings.TrimSuffix(name, "S")} {
			if _, ok := known[other]; ok {
				unknown[name] = other
			}
		}
	}
	return unknown
}

// filePath returns the configuration file to read, or "". It takes the name
// away from the variables, since it is no setting.
func filePath(fs *pflag.FlagSet, variables source) (string, error) {
	path, _ := variables.values[configFlag].(string)
	delete(variables.values, configFlag)
	if !fs.Changed(configFlag) {
		return path, nil
	}
	return fs.GetString(configFlag)
}

// fromFile reads a YAML file; no path is an empty one.
func fromFile(path string) (source, error) {
	if path == "" {
		return source{}, nil
	}
	s, err := read("file "+path, file.Provider(path), yaml.Parser())
	if err != nil {
		return s, err
	}
	var problems []error
	known := names()
	for _, key := range slices.Sorted(maps.Keys(s.values)) {
		if !known[key] {
			problems = append(problems, fmt.Errorf("%s: unknown key %s", s.where, key))
		} else if s.values[key], err = flatten(s.values[key]); err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", s.where, key, err))
		}
	}
	return s, errors.Join(problems...)
}

// flatten turns a YAML value into what a flag would give: a text, or a list of
// texts. A mapping becomes a list of KEY=VALUE.
func flatten(value any) (any, error) {
	switch value := value.(type) {
	case nil:
		return "", nil
	case []any:
		list := make([]string, 0, len(value))
		for _, entry := range value {
			text, err := scalar(entry)
			if err != nil {
				return nil, err
			}
			list = append(list, text)
		}
		return list, nil
	case map[string]any:
		list := make([]string, 0, len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			text, err := scalar(value[key])
			if err != nil {
				return nil, err
			}
			list = append(list, key+"="+text)
		}
		return list, nil
	default:
		return scalar(value)
	}
}

func scalar(value any) (string, error) {
	switch value.(type) {
	case string, bool, int, int64, uint64:
		return fmt.Sprint(value), nil
	default:
		return "", fmt.Errorf("%v (%T) is no text, number or list of them", value, value)
	}
}

// names returns the names of all settings.
func names() map[string]bool {
	known := make(map[string]bool)
	for _, s := range settings(&Config{}) {
		known[s.name] = true
	}
	return known
}

// apply merges the sources, later ones before earlier ones, and sets c.
func (c *Config) apply(sources ...source) error {
	k := koanf.New(delimiter)
	where := make(map[string]string)
	for _, s := range sources {
		if err := k.Load(confmap.Provider(s.values, ""), nil); err != nil {
			return fmt.Errorf("%s: %w", s.where, err)
		}
		for name := range s.values {
			where[name] = s.where
		}
	}
	var problems []error
	for _, s := range settings(c) {
		if !k.Exists(s.name) {
			continue
		}
		if err := s.set(k.Get(s.name)); err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", where[s.name], s.label(where[s.name]), err))
		}
	}
	return errors.Join(problems...)
}

// label returns the setting's name as it is written in a place.
func (s setting) label(where string) string {
	switch {
	case where == "environment":
		return envName(s.name)
	case strings.HasPrefix(where, "file"):
		return s.name
	default:
		return "--" + s.name
	}
}
