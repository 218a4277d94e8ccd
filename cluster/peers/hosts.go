package peers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// lookupWait bounds a dial's wait for the look-up of a name; after it the dial uses the
	// last addresses of the name. It is less where the dial itself has little time.
	lookupWait = 100 * time.Millisecond
	// lookupLimit bounds a lookup for which no dial waits any more.
	lookupLimit = 1500 * time.Millisecond
)

// Hosts opens connections. It looks a name up at each dial, because in a cluster of containers
// the address behind a name changes with each start. It keeps the addresses, and uses them
// while names do not resolve: the lost machine may have run the leader and the name service.
// Another node may have such an address by now; the greeting detects that.
type Hosts struct {
	// ctx ends with the node, and with it the lookups for which no dial waits.
	ctx    context.Context
	dial   func(ctx context.Context, address string) (net.Conn, error)
	lookup func(ctx context.Context, host string) ([]string, error)

	mu sync.Mutex
	// last are the addresses by name, sorted. They are never changed.
	last map[string][]string
}

// NewHosts returns hosts. ctx ends with the node. lookup may be nil: then addresses are dialled as
// they are. last are the addresses by name that the process before knew.
func NewHosts(ctx context.Context, dial func(ctx context.Context, address string) (net.Conn, error),
	lookup func(ctx context.Context, host string) ([]string, error), last map[string][]string,
) *Hosts {
	h := &Hosts{ctx: ctx, dial: dial, lookup: lookup, last: map[string][]string{}}
	maps.Copy(h.last, last)
	return h
}

// LookupHost is the default lookup of names. It uses its own resolver, so that the lookup does
// not join an earlier lookup of the same name that hangs since this node was cut off.
func LookupHost(ctx context.Context, host string) ([]string, error) {
	return (&net.Resolver{}).LookupHost(ctx, host)
}

// DialContext connects to host:port.
func (h *Hosts) DialContext(ctx context.Context, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || h.lookup == nil {
		return h.dial(ctx, address)
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return h.dial(ctx, address)
	}
	ips, err := h.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	var failed error
	for i, ip := range ips {
		conn, err := h.dialShare(ctx, len(ips)-i, net.JoinHostPort(ip, port))
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, fmt.Errorf("dialling %s: %w", host, failed)
}

// dialShare dials one of several addresses that share the time of ctx.
func (h *Hosts) dialShare(ctx context.Context, addresses int, address string) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(addresses))
		defer cancel()
	}
	return h.dial(ctx, address)
}

type lookedUp struct {
	ips []string
	err error
}

// resolve returns the addresses of a name: those of a lookup, or the kept ones if it fails or
// takes long. A slow lookup continues, for the next dial.
func (h *Hosts) resolve(ctx context.Context, host string) ([]string, error) {
	done := make(chan lookedUp, 1)
	go func() { done <- h.lookUp(host) }()
	kept := h.kept(host)
	var late <-chan time.Time
	if len(kept) > 0 {
		timer := time.NewTimer(maxLookupWait(ctx))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case r := <-done:
		if r.err != nil && len(kept) > 0 {
			return kept, nil
		}
		return r.ips, r.err
	case <-late:
		return kept, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("looking up %s: %w", host, ctx.Err())
	}
}

// maxLookupWait bounds the wait of a dial with this ctx for a look-up.
func maxLookupWait(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(lookupWait, time.Until(deadline)/4)
	}
	return lookupWait
}

func (h *Hosts) lookUp(host string) lookedUp {
	ctx, cancel := context.WithTimeout(h.ctx, lookupLimit)
	defer cancel()
	ips, err := h.lookup(ctx, host)
	if err == nil && len(ips) == 0 {
		err = fmt.Errorf("looking up %s: no addresses", host)
	}
	if err == nil {
		h.mu.Lock()
		h.last[host] = slices.Sorted(slices.Values(ips))
		h.mu.Unlock()
	}
	return lookedUp{ips, err}
}

func (h *Hosts) kept(host string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last[host]
}

func (h *Hosts) of(members []*raftlogv1.Member) map[string][]string {
	known := map[string][]string{}
	for _, m := range members {
		for _, address := range []string{m.GetGrpcAddress(), m.GetRaftAddress()} {
			if host, _, err := net.SplitHostPort(address); err == nil && !m.GetRemoved() {
				if ips := h.kept(host); len(ips) > 0 {
					known[host] = ips
				}
			}
		}
	}
	return known
}
