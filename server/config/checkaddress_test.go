package config_test

import (
	"testing"

	"github.com/idnode/idnode/server/config"
)

func TestCheckAddress(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1:7400":    "",
		"[::1]:1":          "",
		":65535":           "",
		"host":             `"host" is not HOST:PORT`,
		"::1:7400":         `"::1:7400" is not HOST:PORT`,
		"http://host:7400": `"http://host:7400" is not HOST:PORT`,
		"user@host:7400":   `"user@host:7400" has an invalid host`,
		"host name:7400":   `"host name:7400" has an invalid host`,
		"host:0":           `"host:0" has a port that is not 1 to 65535`,
		"host:65536":       `"host:65536" has a port that is not 1 to 65535`,
		"host:":            `"host:" has a port that is not 1 to 65535`,
		"host:7400 ":       `"host:7400 " has a port that is not 1 to 65535`,
	} {
		got := ""
		if err := config.CheckAddress(address, false); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
	if err := config.CheckAddress(":0", true); err != nil {
		t.Error(err)
	}
}
