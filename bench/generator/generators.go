package generator

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/sony/sonyflake/v2"

	hilogenerator "github.com/idnode/idnode/client/generator"
)

// The names of generators that ratios are made of.
const (
	AtomicAdd  = "atomic add"
	HiLoNumber = "idnode HiLo number"
	HiLoString = "idnode HiLo string"
	UUIDv7     = "google/uuid v7 string"
)

// generator is one of those that are measured.
type generator struct {
	name string
	// begin makes one, returning its loop and what ends it.
	begin func() (take loop, end func(), err error)
}

var generators = []generator{
	{AtomicAdd, beginAtomic},
	{"mutex and increment", beginMutex},
	{HiLoNumber, beginNumbers},
	{HiLoString, beginStrings},
	{"google/uuid v4 string", beginUUIDv4},
	{UUIDv7, beginUUIDv7},
	{"oklog/ulid string", beginULID},
	{"bwmarrin/snowflake number", beginSnowflake},
	{"sony/sonyflake number", beginSonyflake},
}

// padded keeps what is counted on a cache line of its own, as idnode does.
type padded struct {
	_      [128]byte
	atomic atomic.Int64
	mutex  sync.Mutex
	plain  int64
	_      [128]byte
}

func nothing() {}

func beginAtomic() (loop, func(), error) {
	p := new(padded)
	return func(n int) error {
		for range n {
			p.atomic.Add(1)
		}
		return nil
	}, nothing, nil
}

func beginMutex() (loop, func(), error) {
	p := new(padded)
	return func(n int) error {
		for range n {
			p.mutex.Lock()
			p.plain++
			p.mutex.Unlock()
		}
		return nil
	}, nothing, nil
}

// endless is a source of ranges without a network: what a generator costs while
// its ranges last, and the fetching of the next one in the background.
type endless struct{ max int64 }

func (e *endless) Next(_ context.Context, r hilogenerator.Request) (hilogenerator.Range, error) {
	low := e.max + 1
	e.max += hilogenerator.MaxCount
	return hilogenerator.Range{
		Low: low, High: e.max, Prefix: "users/", NodeTag: "A", At: time.Now(),
	}, nil
}

func (e *endless) Return(context.Context, hilogenerator.Range, int64) error { return nil }

func newHiLo() (*hilogenerator.Generator, func(), error) {
	g, err := hilogenerator.New(&endless{}, hilogenerator.Config{FirstSize: hilogenerator.MaxCount})
	if err != nil {
		return nil, nil, err
	}
	return g, func() { _ = g.Close(context.Background()) }, nil // The source forgets what it is given back.
}

func beginNumbers() (loop, func(), error) {
	g, end, err := newHiLo()
	ctx := context.Background()
	return func(n int) error {
		for range n {
			if _, err := g.Next(ctx); err != nil {
				return err
			}
		}
		return nil
	}, end, err
}

func beginStrings() (loop, func(), error) {
	g, end, err := newHiLo()
	ctx := context.Background()
	return func(n int) error {
		for range n {
			if _, err := g.NextID(ctx); err != nil {
				return err
			}
		}
		return nil
	}, end, err
}

func beginUUIDv4() (loop, func(), error) {
	return func(n int) error {
		var id string
		for range n {
			id = uuid.NewString()
		}
		runtime.KeepAlive(id)
		return nil
	}, nothing, nil
}

func beginUUIDv7() (loop, func(), error) {
	return func(n int) error {
		var text string
		for range n {
			id, err := uuid.NewV7()
			if err != nil {
				return err
			}
			text = id.String()
		}
		runtime.KeepAlive(text)
		return nil
	}, nothing, nil
}

func beginULID() (loop, func(), error) {
	return func(n int) error {
		var id string
		for range n {
			id = ulid.Make().String()
		}
		runtime.KeepAlive(id)
		return nil
	}, nothing, nil
}

func beginSnowflake() (loop, func(), error) {
	node, err := snowflake.NewNode(1)
	return func(n int) error {
		var id snowflake.ID
		for range n {
			id = node.Generate()
		}
		runtime.KeepAlive(id)
		return nil
	}, nothing, err
}

func beginSonyflake() (loop, func(), error) {
	node, err := sonyflake.New(sonyflake.Settings{MachineID: func() (int, error) { return 1, nil }})
	return func(n int) error {
		for range n {
			if _, err := node.NextID(); err != nil {
				return err
			}
		}
		return nil
	}, nothing, err
}
