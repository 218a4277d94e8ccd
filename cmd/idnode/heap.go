package main

import "runtime"

// heapRoom is how much is set aside to make the garbage collector patient. It
// collects when the heap has doubled, and the heap of a node with few names is so
// small that under load it doubles many times a second. Memory that is set aside and
// never touched counts as heap and takes no room in the machine: a small node
// collects as rarely as one of this size, and a large one hardly notices. GOGC, which
// is a factor, would cost the large one as much again.
const heapRoom = 64 << 20

// patientCollector sets heapRoom aside until the function it returns is called.
func patientCollector() (release func()) {
	room := make([]byte, heapRoom)
	return func() { runtime.KeepAlive(room) }
}
