package wal_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/store/wal"
)

// guard returns a Config.Write that refuses every change after the first that failed.
func guard() func(string, func() error) error {
	var mu sync.Mutex
	var failed error
	return func(what string, change func() error) error {
		mu.Lock()
		defer mu.Unlock()
		if failed != nil {
			return failed
		}
		if err := change(); err != nil {
			failed = fmt.Errorf("%s: %w", what, err)
		}
		return failed
	}
}

// Entries are on disk when StoreLogs returns, and are there when the log is opened again.
func Example() {
	parent, err := os.MkdirTemp("", "wal")
	check(err)
	defer os.RemoveAll(parent)
	cfg := wal.Config{Dir: filepath.Join(parent, "log"), SegmentBytes: 64 << 10, Write: guard()}
	check(wal.Create(cfg))
	l, err := wal.Open(cfg)
	check(err)

	check(l.StoreLogs([]*raft.Log{
		{Index: 1, Term: 1, Data: []byte("one")},
		{Index: 2, Term: 1, Data: []byte("two")},
		{Index: 3, Term: 1, Data: []byte("three")},
	}))
	// A new leader's entry replaces the end of the log, a snapshot its beginning.
	check(l.DeleteRange(3, 3))
	check(l.StoreLog(&raft.Log{Index: 3, Term: 2, Data: []byte("another")}))
	check(l.DeleteRange(1, 1))
	fmt.Println(l.StoreLog(&raft.Log{Index: 5, Term: 2}))
	check(l.Close())

	l, err = wal.Open(cfg)
	check(err)
	defer l.Close()
	first, _ := l.FirstIndex()
	last, _ := l.LastIndex()
	for index := first; index <= last; index++ {
		var entry raft.Log
		check(l.GetLog(index, &entry))
		fmt.Println(entry.Index, entry.Term, string(entry.Data))
	}
	// Output:
	// wal: log entry 5 does not follow 3
	// 2 1 two
	// 3 2 another
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
