//go:build !linux

package transport

// keepSilent does nothing: only Linux can defer accepts.
func keepSilent(uintptr) {}
