package node

import "github.com/idnode/idnode/server/service"

// ownEtags returns this node's counters and their ceilings in the cluster, for the service.
func (n *Node) ownEtags() []service.OwnEtag {
	last, reserved, ceilings := n.counters.Last(), n.counters.Reserved(), map[string]uint64{}
	for _, d := range n.state.Etags(n.cluster.ID().Bytes()).GetDatabases() {
		ceilings[d.GetDatabase()] = d.GetCeiling()
	}
	etags := make([]service.OwnEtag, 0, len(reserved))
	for database, end := range reserved {
		etags = append(etags, service.OwnEtag{
			Database: database, Last: last[database], Reserved: end, Ceiling: ceilings[database],
		})
	}
	return etags
}

// maxDatabases returns the number of databases for which the cluster keeps ceilings of this
// node.
func (n *Node) maxDatabases() int {
	limit, _ := n.state.Setting("max-databases")
	return int(limit.Value)
}
