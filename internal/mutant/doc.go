// Package mutant plants bugs, to prove that the tests find bugs.
//
// A mutant is one bug that this program, or one like it, has had or could have.
// It stands at the place where it would be made:
//
//	if mutant.On(mutant.SeedLowers) {
//		force = true
//	}
//
// A program built without the build tag mutants has none of them: On is then
// false when the compiler runs, which leaves nothing of the branch. Built with
// the tag, it has the one that the environment variable IDNODE_MUTANT names, and
// none if there is no such variable. The command test/mutants runs the tests
// against each and says which of them found it.
package mutant
