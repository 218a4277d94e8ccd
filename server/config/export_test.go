package config

import "testing"

// SetHostname makes the machine's name another one for the time of a test.
func SetHostname(t *testing.T, name string) {
	t.Helper()
	before := hostname
	hostname = func() (string, error) { return name, nil }
	t.Cleanup(func() { hostname = before })
}
