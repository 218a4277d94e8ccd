// Package counterfile reads and writes lists of counters as others keep them: a
// plain CSV, and RavenDB's export of a database.
//
// It knows the forms and checks no names: what a name may be is for the cluster
// to say, which folds it too.
package counterfile
