//go:build mutants

package mutant

import "os"

// variable names the bug.
const variable = "IDNODE_MUTANT"

// active is the bug that this process has.
var active = take()

// take takes the bug out of the environment, in which the program looks for its
// settings, and knows no such one.
func take() Name {
	name := os.Getenv(variable)
	_ = os.Unsetenv(variable) // It fails for no name that is one.
	return Name(name)
}

// On says whether the program has this bug.
func On(name Name) bool { return name == active }
