//go:build !linux

package check_test

import "time"

// threadTime stands in for the thread's processor time.
func threadTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
