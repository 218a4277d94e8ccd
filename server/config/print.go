package config

import (
	"fmt"
	"io"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/idnode/idnode/internal/bytesize"
)

// Print writes the configuration as a YAML file that gives it again, in the
// order of the flags.
func (c *Config) Print(w io.Writer) error {
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range settings(c) {
		var value yaml.Node
		if err := value.Encode(s.printed()); err != nil {
			return fmt.Errorf("config: print %s: %w", s.name, err)
		}
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: s.name}, &value)
	}
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return fmt.Errorf("config: print: %w", err)
	}
	return encoder.Close()
}

// printed returns the value as it is written by hand.
func (s setting) printed() any {
	switch field := s.field.(type) {
	case *time.Duration:
		return field.String()
	case *bytesize.Size:
		return field.String()
	case *map[string]string:
		return fromMap(*field)
	case *[]string:
		return append([]string{}, *field...)
	default:
		return s.field
	}
}
