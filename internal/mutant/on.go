//go:build mutants

package mutant

import "os"

// active is the bug that this process has.
var active = Name(os.Getenv("IDNODE_MUTANT"))

// On says whether the program has this bug.
func On(name Name) bool { return name == active }
