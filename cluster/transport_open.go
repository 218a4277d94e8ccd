package cluster

import (
	"net"
	"os"
	"time"

	"github.com/hashicorp/raft"
)

// openTransport opens the Raft port.
func (n *Node) openTransport() (raftTransport, error) {
	if n.cfg.RaftListener != nil {
		_ = n.cfg.RaftListener.Close()
	}
	addr, err := net.ResolveTCPAddr("tcp", n.cfg.Advertise.Raft)
	if err != nil {
		return nil, err
	}
	return raft.NewTCPTransport(n.cfg.RaftListen, addr, 3, 5*time.Second, os.Stderr)
}
