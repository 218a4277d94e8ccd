package main

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/idnode/idnode/internal/nearest"
	"github.com/idnode/idnode/transfer"
)

// contexts is the file of saved connections.
type contexts struct {
	path string
	// Current is the one that commands take which say nothing; empty for none.
	Current  string                `yaml:"current,omitempty"`
	Contexts map[string]connection `yaml:"contexts"`
}

// contextName is what a context may be called.
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
		return nil, &usageError{err: err}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return nil, usagef("%s: %s", c.path, plainly(err.Error()))
	}
	return c, nil
}

// get returns the context called name.
func (c *contexts) get(name string) (connection, error) {
	saved, ok := c.Contexts[name]
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
