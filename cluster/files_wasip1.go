package cluster

// withFiles leaves c without a storage: bbolt, which the files are made with,
// does not compile for WebAssembly. Simulations bring a storage of their own.
func (c Config) withFiles() Config { return c }
