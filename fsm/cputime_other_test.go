//go:build !linux

package fsm

import "time"

// threadTime stands in for the thread's processor time.
func threadTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
