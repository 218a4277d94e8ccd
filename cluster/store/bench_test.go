package store

import (
	"fmt"
	"testing"

	"github.com/hashicorp/raft"
)

// entriesOf returns n entries from the given index on, with data of a size.
func entriesOf(from uint64, n, size int) []*raft.Log {
	logs := make([]*raft.Log, n)
	for i := range logs {
		logs[i] = &raft.Log{Index: from + uint64(i), Term: 1, Data: make([]byte, size)}
	}
	return logs
}

// BenchmarkStoreLogs appends with and without the disk.
func BenchmarkStoreLogs(b *testing.B) {
	for _, noSync := range []bool{false, true} {
		for _, size := range []int{256, 16 << 10} {
			b.Run(fmt.Sprintf("size=%d/sync=%t", size, !noSync), func(b *testing.B) {
				cfg := testConfig(b.TempDir(), newFatals())
				cfg.noSync, cfg.segmentBytes = noSync, 0
				storeLoop(b, mustOpen(b, cfg), size)
			})
		}
	}
}

func storeLoop(b *testing.B, s raft.LogStore, size int) {
	b.ReportAllocs()
	index := uint64(1)
	for b.Loop() {
		must(b, s.StoreLogs(entriesOf(index, 1, size)))
		index++
	}
}

// BenchmarkOpen measures reading and checking a whole log at start.
func BenchmarkOpen(b *testing.B) {
	for _, size := range []int{512, 8 << 10} {
		b.Run(fmt.Sprintf("entries=25000/size=%d", size), func(b *testing.B) {
			cfg := testConfig(b.TempDir(), newFatals())
			s := mustOpen(b, cfg)
			for i := range 100 {
				must(b, s.StoreLogs(entriesOf(uint64(250*i+1), 250, size)))
			}
			mustClose(b, s)
			for b.Loop() {
				mustClose(b, mustOpen(b, cfg))
			}
		})
	}
}
