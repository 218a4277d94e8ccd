package member

// Addresses are where a node is reached, as host:port with a name or an IP.
type Addresses struct {
	GRPC string
	Raft string
	// HTTP may be empty.
	HTTP string
}
