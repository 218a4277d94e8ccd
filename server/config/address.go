package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// fillAdvertised fills in where others reach the node, as far as it can be told: gRPC at this
// node's entry among the peers, or where it listens; Raft and HTTP where they listen, with the
// host of gRPC if they listen on every address. What stays empty is for Validate to refuse.
func (c *Config) fillAdvertised() {
	if c.AdvertiseGRPC == "" {
		c.AdvertiseGRPC = c.Peer[c.Tag]
	}
	if c.AdvertiseGRPC == "" && !listensEverywhere(c.GRPC) {
		c.AdvertiseGRPC = c.GRPC
	}
	host, _, _ := net.SplitHostPort(c.AdvertiseGRPC)
	fillAddress(&c.AdvertiseRaft, c.Raft, host)
	fillAddress(&c.AdvertiseHTTP, c.HTTP, host)
}

// OwnEntryElsewhere says that others are told to reach the node where its entry among the
// peers says, and that it listens elsewhere; empty if not. A node that has moved may have
// kept its own old entry.
func (c *Config) OwnEntryElsewhere() string {
	entry := c.Peer[c.Tag]
	host, port, _ := net.SplitHostPort(entry)
	listenHost, listenPort, _ := net.SplitHostPort(c.GRPC)
	ip, notIP := netip.ParseAddr(host)
	listenIP, notListenIP := netip.ParseAddr(listenHost)
	otherIP := notIP == nil && notListenIP == nil && !listenIP.IsUnspecified() && ip != listenIP
	if entry == "" || entry != c.AdvertiseGRPC || listenPort == "0" || port == listenPort && !otherIP {
		return ""
	}
	return fmt.Sprintf("this node's own entry in peer is %s=%s, and it listens at %s: unless the one leads to the other, no node reaches "+
		"it; correct the entry, or set advertise-grpc", c.Tag, entry, c.GRPC)
}

func fillAddress(advertised *string, listen, host string) {
	switch {
	case *advertised != "" || listen == "":
	case !listensEverywhere(listen):
		*advertised = listen
	case host != "":
		_, port, _ := net.SplitHostPort(listen)
		*advertised = net.JoinHostPort(host, port)
	}
}

// listensEverywhere says whether an address has no host that others could use.
func listensEverywhere(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return host == "" || (err == nil && ip.IsUnspecified())
}

// isLoopback says whether an address is reached from this machine only. Of the
// names only localhost counts: the resolver decides what others mean.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || (err == nil && ip.Unmap().IsLoopback())
}

func checkDial(address string) error {
	if err := CheckAddress(address, false); err != nil {
		return err
	}
	if listensEverywhere(address) {
		return fmt.Errorf("%q has no host that others can reach", address)
	}
	return nil
}

func checkHostName(name string) error {
	if strings.Trim(name, ".") == "" || strings.ContainsAny(name, notInHosts+":*") {
		return fmt.Errorf("%q is not the name of a host alone", name)
	}
	return nil
}

const notInHosts = " \t\r\n/@=,"

// CheckAddress returns why an address is not a host, which may be empty, and a port up to 65535.
func CheckAddress(address string, zeroPort bool) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not HOST:PORT", address)
	}
	if strings.ContainsAny(host, notInHosts) {
		return fmt.Errorf("%q has an invalid host", address)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || (number == 0 && !zeroPort) {
		return fmt.Errorf("%q has a port that is not 1 to 65535", address)
	}
	return nil
}
