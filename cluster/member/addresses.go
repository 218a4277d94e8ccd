package member

// Addresses are a node's addresses, as host:port with a name or an IP.
type Addresses struct {
	GRPC string
	Raft string
	// HTTP is empty if the node has no HTTP port.
	HTTP string
}
