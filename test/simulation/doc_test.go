// Package simulation runs whole nodes in virtual time: the gRPC server and its
// clients, the service, the cluster with Raft, and the state machine, in one
// process, on a network and on disks that exist only in memory.
//
// One seed draws a plan: how many nodes there are, which kinds of faults there
// are at all and how often, how slow disks and network are, how the nodes are
// configured, and whether members come and go. Clients make calls of all kinds on
// all nodes meanwhile, in two databases, also such as must be refused; each has an
// identity of its own, of which every answer is known, and some share a generator
// of HiLo ids. Then
// the faults stop, and within twenty virtual seconds every node must give an
// identity, and within sixty all states must be equal; where one is changed then, its
// node must end. After each entry the state's
// hash is compared with that of the other nodes at the same index. In the end the
// history of all answers is judged. Each step of a node, on its disk and in its state, is
// judged by package model; one that it does not allow fails the seed, with the steps
// before it.
//
// A sync of a disk and a message between nodes may take up to a second on one node
// while the others are quick; so may the first write of a term, and the installation
// of a snapshot. A leader may leave entries on its own disk alone, and come back at
// any distance from the election of another. Callers import counters amid returns of
// ranges, ask in more databases than there may be, and retry what is on its way still. Some
// lease workers, and make Snowflake ids with clocks that are off by up to a day, while clocks of nodes
// jump by up to half a minute.
//
// Liveness is judged all the time: a majority that is up, connected, and has quick enough
// disks gives an identity within sixty syncs. In some seeds a scenario takes the place of
// the faults, with calm times that are long enough for that: in one, all disks are slow,
// or some, and machines are lost beside that. In others machines move to other addresses,
// names do not resolve, directories are older copies, which an operator trusts, or empty, or a
// voter is removed and the leader lost right after; or firewalls close ports, and each node is judged
// by itself. Some callers use the Go client, and repeat
// what failed with what its error names until they know.
//
// In tests of their own a majority is lost for good and the survivors are recovered, between callers' tries and retries:
// the model of steps knows no recovery, so no seed draws one.
//
// Goroutines cannot be copied. So a process that is set back with its memory is a new one, with
// an older copy of the disk, that counts no start and has the former one's number: what that
// remembered since its start is lost. The log of a node is written outside of what is
// simulated; other tests have one that nobody reads.
//
// A node's write becomes durable only when its disk has synced it; a
// crash drops the rest, or keeps the beginning of it, and may come between any
// two writes. Half of the seeds keep the Raft log in cluster/store/wal, on a disk of
// files, names and sectors. A node that ends by itself without a fault of its disk
// is a failure too, and so is a call that ends with INTERNAL, takes too long, or is
// refused for what is wrong with another.
//
// The goroutines of a seed run in an order of their own each time, and nodes draw
// their names at random, so a seed that failed may pass the next time; most fail
// again. Built for WebAssembly, where there is one thread and every clock and
// random number is given from outside, each run of a seed is the same to the last
// line of its log: that is what make replay does. It is slower by far, and the
// order it has is not the one in which the seed failed.
package simulation
