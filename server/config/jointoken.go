package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

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
			return "", errors.New("config: join-token-file: there is no standard input")
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
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", errors.New("config: join-token-file: there is no token in it")
	}
	return token, nil
}
