package client

// Waiting counts the callers who wait to share a call.
func Waiting(c *Client) int {
	c.shares.mu.Lock()
	defer c.shares.mu.Unlock()
	n := 0
	for _, h := range c.shares.open {
		n += len(h.waiting)
	}
	return n
}
