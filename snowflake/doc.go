// Package snowflake leases windows of time to the workers of a pool, for Snowflake ids: an id has a
// time, the number of a worker, and a sequence number within one unit of that time. Whoever holds
// a worker makes ids by itself, with times inside its window alone.
//
// A lease is no lock: its holder may pause, and go on after another has the worker. So a lease is
// not on the worker but on times. The windows of one worker never overlap, whatever the clocks of
// holders and leaders show. A wrong clock makes a caller wait, or be refused.
//
// The package is pure: its only clock is the argument. Nothing in it is safe for concurrent use.
package snowflake
