package config

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/raftlog"
)

// minHeartbeat is the least that a heartbeat timeout may be. Below it, the scheduling of a
// busy machine alone looks like a lost leader.
const minHeartbeat = 20 * time.Millisecond

// problems gathers what is wrong, so that one run shows all of it.
type problems struct{ list []error }

func (p *problems) add(name, format string, args ...any) {
	p.list = append(p.list, fmt.Errorf("%s: %w", name, fmt.Errorf(format, args...)))
}

func (p *problems) check(name string, err error) {
	if err != nil {
		p.add(name, "%w", err)
	}
}

func between[T cmp.Ordered](p *problems, name string, value, low, high T) {
	if value < low || value > high {
		p.add(name, "%v is not from %v to %v", value, low, high)
	}
}

// Validate checks every setting, and the relations between them. The error has a line for each at fault.
func (c *Config) Validate() error {
	p := &problems{}
	c.checkIdentity(p)
	c.checkRole(p)
	c.checkAddresses(p)
	c.checkTLS(p)
	c.checkBounds(p)
	return errors.Join(p.list...)
}

func (c *Config) checkIdentity(p *problems) {
	if c.DataDir == "" {
		p.add("data-dir", "no folder is given")
	}
	switch {
	case c.Tag != "":
		p.check("tag", docid.ValidateNodeTag(c.Tag))
	case len(c.Join) == 0:
		p.add("tag", "only a node that joins may leave its tag to the cluster")
	case c.TLS():
		p.add("tag", "with TLS a node must name its tag, because its certificate does")
	}
	if c.ServerPrefix != "" {
		p.check("server-prefix", checkServerPrefix(c.ServerPrefix))
	}
}

// checkServerPrefix accepts texts that can be between two separators in an id.
func checkServerPrefix(prefix string) error {
	if strings.Contains(prefix, docid.DefaultSeparator) {
		return fmt.Errorf("%q holds the separator %s", prefix, docid.DefaultSeparator)
	}
	if len(prefix) > docid.MaxDatabaseBytes {
		return fmt.Errorf("%d bytes are more than %d", len(prefix), docid.MaxDatabaseBytes)
	}
	return docid.ValidateTag(prefix, docid.DefaultSeparator)
}

// CheckClusterID refuses what is neither empty nor a cluster's id.
func CheckClusterID(id string) error {
	if b, _ := hex.DecodeString(id); id != "" && (len(b) != nodeid.Size || hex.EncodeToString(b) != id) {
		return fmt.Errorf("%q is not 32 hexadecimal digits, as `idnode cluster status` prints them", id)
	}
	return nil
}

// checkRole checks the way in which the node comes to its cluster: with its peers, by
// joining, or alone. Load has made one way of peer and join.
func (c *Config) checkRole(p *problems) {
	if c.Watcher && len(c.Join) == 0 {
		p.add("watcher", "goes only with join: a cluster needs voters to begin")
	}
	if err := CheckClusterID(c.ClusterID); err != nil {
		p.add("cluster-id", "%w", err)
	}
	checkPeers(p, c.Peer)
	if _, ok := c.Peer[c.Tag]; len(c.Peer) > 0 && !ok {
		p.add("peer", "this node's own tag %q is not among them", c.Tag)
	}
	if c.SingleNode && (len(c.Peer) > 1 || len(c.Join) > 0) {
		p.add("single-node", "contradicts other peers and join: it is for a node that begins a cluster alone")
	}
	for _, address := range c.Join {
		p.check("join", checkDial(address))
	}
}

var ErrAlone = errors.New("config: peer: names no other node: list all first nodes, the same on each of them; or give join with a " +
	"member's address; or, if this node is to be a cluster by itself, single-node")

var ErrNoData = errors.New("config: cluster-id: this node's cluster has begun, and the data directory has nothing of it; no new cluster " +
	"is formed, because it would give the same ids again")

var ErrUnguarded = errors.New("config: admin: with TLS and without roles, every holder of a certificate of the CA could take members " +
	"and numbers away: name the operators' certificates with --admin NAME, or say --admin '*'")

// Guarded says whether dangerous calls are kept to Admin, be it empty, as long as there are no roles.
func (c *Config) Guarded() bool {
	return (len(c.Admin) > 0 || c.TLS()) && !c.openToAll()
}

func (c *Config) openToAll() bool { return slices.Equal(c.Admin, []string{everyone}) }

// everyone, as the only administrator, means all principals.
const everyone = "*"

// CheckGuard is asked once it is known whether there are roles. A node that may join a
// cluster with roles must say its own rules all the same: these roles may be taken away.
func (c *Config) CheckGuard(roles bool) error {
	if c.Guarded() && len(c.Admin) == 0 && !roles {
		return ErrUnguarded
	}
	return nil
}

// CheckFirstStart is asked before a node without a cluster begins or joins one. It keeps the node
// from being one by itself because the others were left out by a slip, or the data of its cluster
// are gone: each such cluster would give the same ids.
func (c *Config) CheckFirstStart() error {
	switch {
	case len(c.Join) > 0:
	case c.ClusterID != "":
		return fmt.Errorf("%w: if the disk of %s is not mounted, mount it; if the data of this node alone are lost, let another join in its "+
			"place ('idnode cluster remove', --join); if those of all nodes are, begin a cluster under new tags, without cluster-id, and restore "+
			"a backup into it before anybody uses it", ErrNoData, c.DataDir)
	case len(c.Peer) <= 1 && !c.SingleNode:
		return ErrAlone
	}
	return c.CheckGuard(false)
}

func checkPeers(p *problems, addresses map[string]string) {
	owner := make(map[string]string, len(addresses))
	for _, tag := range slices.Sorted(maps.Keys(addresses)) {
		address := addresses[tag]
		p.check("peer", docid.ValidateNodeTag(tag))
		p.check("peer", checkDial(address))
		if other, ok := owner[address]; ok {
			p.add("peer", "%s and %s have the same address %s", other, tag, address)
		}
		owner[address] = tag
	}
}

type listener struct {
	name, listen, advertised string
	// open means that everybody may reach it.
	open bool
}

// MetricsListener returns the address of the port of metrics and health, if there is one, and whether it
// is without TLS, whatever the others are.
func (c *Config) MetricsListener() (address string, plain bool) {
	return strings.CutPrefix(c.Metrics, "http://")
}

func (c *Config) listeners() []listener {
	all := []listener{
		{"grpc", c.GRPC, c.AdvertiseGRPC, false}, {"raft", c.Raft, c.AdvertiseRaft, false}, {"http", c.HTTP, c.AdvertiseHTTP, false},
	}
	if c.HTTP == "" {
		return all[:2]
	}
	return all
}

func (c *Config) checkAddresses(p *problems) {
	bound := make(map[string]string)
	for _, l := range c.listeners() {
		if c.checkListener(p, l, bound) {
			c.checkAdvertised(p, l)
		}
	}
	if c.Metrics != "" {
		address, plain := c.MetricsListener()
		c.checkListener(p, listener{name: "metrics", listen: address, open: plain}, bound)
	}
	if c.HTTP == "" && c.AdvertiseHTTP != "" {
		p.add("advertise-http", "there is no http to advertise")
	}
	if c.HTTP == "" && len(c.HTTPHost) > 0 {
		p.add("http-host", "there is no http that could be called")
	}
	for _, name := range c.HTTPHost {
		p.check("http-host", checkHostName(name))
	}
}

// checkListener checks an address to listen on, also against bound, and adds it there; false for no address.
func (c *Config) checkListener(p *problems, l listener, bound map[string]string) bool {
	if err := CheckAddress(l.listen, true); err != nil {
		p.check(l.name, err)
		return false
	}
	if other, ok := bound[l.listen]; ok && !strings.HasSuffix(l.listen, ":0") {
		p.add(l.name, "%s is the address of %s already", l.listen, other)
	}
	bound[l.listen] = l.name
	if !c.TLS() && !c.Insecure && !l.open && !isLoopback(l.listen) {
		p.add(l.name, "%s is more than loopback: give certificates (tls-cert), or say insecure", l.listen)
	}
	return true
}

// checkAdvertised lets port 0 pass where the node listens on port 0, as the address is not known yet.
func (c *Config) checkAdvertised(p *problems, l listener) {
	name := "advertise-" + l.name
	switch {
	case l.advertised == "":
		p.add(name, "needed, because %s %s has no host that others can reach", l.name, l.listen)
	case l.advertised != l.listen:
		p.check(name, checkDial(l.advertised))
	case listensEverywhere(l.advertised):
		p.add(name, "%s has no host that others can reach", l.advertised)
	}
}

func (c *Config) checkTLS(p *problems) {
	if (c.TLSCert == "") != (c.TLSKey == "") {
		p.add("tls-cert", "goes together with tls-key")
	}
	if c.TLSCA != "" && c.TLSCert == "" {
		p.add("tls-ca", "goes only with tls-cert and tls-key")
	}
	if c.TLS() && c.Insecure {
		p.add("insecure", "contradicts tls-cert")
	}
	if len(c.Admin) > 0 && c.TLSCA == "" && !(c.TLS() && c.openToAll()) {
		p.add("admin", "needs tls-ca: without it no client shows a certificate")
	}
	if slices.Contains(c.Admin, "") {
		p.add("admin", "has a name that is empty")
	}
	if slices.Contains(c.Admin, everyone) && !c.openToAll() {
		p.add("admin", "* stands for all, and the other names for nothing beside it")
	}
	if !c.TLS() || c.TLSCA != "" {
		return
	}
	// Without a CA no stranger can be told from a member on the Raft port.
	if len(c.Peer)+len(c.Join) > 0 {
		p.add("tls-ca", "needed for TLS between nodes")
	} else if !isLoopback(c.Raft) {
		p.add("tls-ca", "needed, or raft must listen on loopback")
	}
}

// checkBounds refuses 0 for a time, which the parts take for "the default"; reserve-for has it for none.
func (c *Config) checkBounds(p *problems) {
	between(p, "heartbeat-timeout", c.HeartbeatTimeout, minHeartbeat, time.Minute)
	between(p, "leader-priority", c.LeaderPriority, 0, 1000)
	between(p, "snapshot-bytes", c.SnapshotBytes, 64<<10, 1<<40)
	between(p, "max-log-format", c.MaxLogFormat, 0, raftlog.FormatVersion)
	between(p, "call-timeout", c.CallTimeout, 200*time.Millisecond, 10*time.Minute)
	if c.ReserveFor != 0 {
		between(p, "reserve-for", c.ReserveFor, time.Second, 24*time.Hour)
	}
	between(p, "storage-watchdog", c.StorageWatchdog, 300*time.Millisecond, 10*time.Minute)
	if c.HeartbeatTimeout >= c.StorageWatchdog { // A slow disk is not yet a dead one.
		p.add("storage-watchdog", "%v is not above heartbeat-timeout (%v)", c.StorageWatchdog, c.HeartbeatTimeout)
	}
	between(p, "max-in-flight", c.MaxInFlight, 1, 1<<24)
	// The largest message, of 4 MiB, counts twice at first, and a caller has half at most.
	between(p, "max-held-bytes", c.MaxHeldBytes, 16<<20, 1<<40)
	between(p, "storage-low-mark", c.StorageLowMark, 1, 1<<50)
	oneOf(p, "log-level", c.LogLevel, "debug", "info", "warn", "error")
	oneOf(p, "log-format", c.LogFormat, "text", "json")
}

func oneOf(p *problems, name, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		p.add(name, "%q is none of %s", value, strings.Join(allowed, ", "))
	}
}
