//go:build race

package fsm

// raceEnabled says that the binary looks for races, and is slow.
const raceEnabled = true
