// Package harness runs real idnode processes for tests: it builds the program
// once, starts clusters with a relay on every directed edge between nodes,
// talks to them over plain gRPC, and keeps a ledger of every id handed out.
//
// It owns processes, relays and the ledger. What must hold is for the tests
// that use it.
package harness
