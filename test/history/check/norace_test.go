//go:build !race

package check_test

// raceEnabled says that the binary looks for races, and is slow.
const raceEnabled = false
