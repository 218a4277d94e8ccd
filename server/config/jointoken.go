package config

import (
	"fmt"
	"os"
	"strings"
)

// JoinTokenText returns the token to join by. A file is read only now: a node that
// has joined needs it no more, and it may be gone.
func (c *Config) JoinTokenText() (string, error) {
	file, ok := strings.CutPrefix(c.JoinToken, "@")
	if !ok {
		return c.JoinToken, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("config: join-token: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}
