package snowflake_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/idnode/idnode/snowflake"
)

// take acquires until the pool refuses, and returns how many workers that were.
func take(t *testing.T, p *snowflake.Pool, principal string, holder func(n int) string, now time.Time) (workers int, err error) {
	t.Helper()
	for n := range 2000 {
		r := at(now)
		r.Principal = principal
		before := p.Hash()
		l, err := p.Acquire(holder(n), uint64(n)+1, r)
		if err != nil {
			if p.Hash() != before {
				t.Error("a refusal changed the pool")
			}
			return n, err
		}
		if l.Principal != principal {
			t.Fatalf("the lease is of %q", l.Principal)
		}
	}
	t.Fatal("2,000 workers")
	return 0, nil
}

func refusedShare(err error) string {
	share := (*snowflake.ShareError)(nil)
	if !errors.As(err, &share) {
		return fmt.Sprint(err)
	}
	return share.What + " " + share.Name
}

// TestNobodyTakesAWholePool: one name has an eighth, one principal half of what others leave, and a node that
// a snapshot brought up counts the same.
func TestNobodyTakesAWholePool(t *testing.T) {
	invented := func(n int) string { return fmt.Sprint("h", n) }
	same := func(int) string { return "billing" }
	p := newPool(t, snowflake.Layouts["twitter"], time.Minute)
	for _, tt := range []struct {
		principal string
		holder    func(int) string
		workers   int
		refused   string
	}{
		{"dns:shop", same, 128, "holder billing"},
		{"dns:shop", invented, 384, "principal dns:shop"}, // 512 in all
		{"dns:other", same, 128, "holder billing"},        // another's holder of that name
		{"dns:other", invented, 128, "principal dns:other"},
		{"dns:third", invented, 128, "principal dns:third"},
		{"dns:shop", invented, 0, "principal dns:shop"},
		{"", same, 128, "holder billing"}, // without TLS
	} {
		p = again(t, p)
		if n, err := take(t, p, tt.principal, tt.holder, start); n != tt.workers || refusedShare(err) != tt.refused {
			t.Errorf("%q took %d workers and was refused as %q, want %d and %q", tt.principal, n, refusedShare(err), tt.workers, tt.refused)
		}
	}
	// When the windows have passed, and after a release, the share is there again.
	later := start.Add(2 * time.Minute)
	if n, err := take(t, p, "dns:shop", same, later); n != 128 {
		t.Errorf("%d workers after the windows: %v", n, err)
	}
	if err := p.Release(latest(p, later), 128, 0); err != nil {
		t.Fatal(err)
	}
	if n, err := take(t, p, "dns:shop", same, later); n != 1 {
		t.Errorf("%d workers after a release: %v", n, err)
	}
}

// TestARefusedShareSaysWhen the next of its own windows ends.
func TestARefusedShareSaysWhen(t *testing.T) {
	l := layout
	l.WorkerBits = 3
	for name, holder := range map[string]func(int) string{
		"holder": func(int) string { return "x" }, "principal": func(n int) string { return fmt.Sprint("h", n) },
	} {
		p := again(t, newPool(t, l, time.Minute))
		for i := range 4 {
			r := at(start.Add(time.Duration(i) * time.Second))
			r.Principal = "dns:a"
			if _, err := p.Acquire(holder(i), uint64(i)+1, r); err != nil {
				t.Fatal(err)
			}
		}
		for _, ends := range []time.Duration{60 * time.Second, 61 * time.Second, 73 * time.Second} {
			r := at(start.Add(13 * time.Second))
			r.Principal = "dns:a"
			_, err := p.Acquire(holder(4), 9, r)
			share := (*snowflake.ShareError)(nil)
			if !errors.As(err, &share) || share.What != name || !share.Begins.Equal(start.Add(ends)) {
				t.Errorf("%s: %v, want the end %s", name, err, start.Add(ends))
			}
			for w := range 4 { // The one that ends first is renewed; at last all are.
				if w == 0 && ends == 60*time.Second || ends == 61*time.Second {
					if _, err := p.Renew(w, uint64(w)+1, r); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// TestAnEvictedLeaseEnds with its window: it is neither renewed nor released, its holder counts until then, and nobody
// else has the worker before.
func TestAnEvictedLeaseEnds(t *testing.T) {
	p := newPool(t, layout, time.Minute)
	acquired, err := p.Acquire("a", 1, at(start))
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error) {
		t.Helper()
		passed, held := (*snowflake.PassedError)(nil), (*snowflake.HeldError)(nil)
		if !errors.As(err, &passed) && !errors.As(err, &held) {
			t.Errorf("%s: %v", what, err)
		}
	}
	before := p.Hash()
	_, err = p.Evict(0, "b", start)
	refused("another's worker", err)
	_, err = p.Evict(1, "", start)
	refused("a worker that nobody has", err)
	if p.Hash() != before {
		t.Error("a refusal changed the pool")
	}
	for range 2 {
		l, err := p.Evict(0, "a", start)
		if err != nil || !l.Evicted() || l.Until != acquired.Until {
			t.Fatalf("%+v, %v", l, err)
		}
		p = again(t, p)
	}
	for _, token := range []uint64{0, 1} {
		_, err = p.Renew(0, token, at(start))
		refused("a renewal", err)
		refused("a release", p.Release(0, token, acquired.From))
	}
	if l, err := p.Acquire("a", 2, at(start)); err != nil || l.Worker != 1 {
		t.Errorf("the holder got %+v, %v", l, err)
	}
	l, err := p.Acquire("c", 3, at(start.Add(time.Minute)))
	if err != nil || l.Worker != 0 || l.From < acquired.Until {
		t.Errorf("after the window: %+v, %v", l, err)
	}
	_, err = p.Evict(1, "", start.Add(2*time.Minute))
	refused("a window that has passed", err)
}

// latest returns the worker with the token 128 whose window is not over.
func latest(p *snowflake.Pool, now time.Time) (found int) {
	p.Leases(0, func(l snowflake.Lease) bool {
		if l.Token == 128 && !l.Free && l.Until > p.Layout().At(now.UnixMilli()) {
			found = l.Worker
		}
		return true
	})
	return found
}

// TestSmallPools: everybody may have four workers, if they are there.
func TestSmallPools(t *testing.T) {
	l := layout
	l.WorkerBits = 3
	p := newPool(t, l, time.Minute)
	for _, principal := range []string{"dns:a", "dns:b"} {
		if n, err := take(t, p, principal, func(int) string { return "x" }, start); n != 4 || refusedShare(err) != "holder x" {
			t.Errorf("%s took %d: %v", principal, n, err)
		}
	}
	full := (*snowflake.FullError)(nil)
	if n, err := take(t, p, "dns:c", func(int) string { return "x" }, start); n != 0 || !errors.As(err, &full) {
		t.Errorf("%d of a full pool: %v", n, err)
	}
}
