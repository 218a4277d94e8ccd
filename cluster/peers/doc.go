// Package peers is what a node knows of the other members, and how it keeps in touch with them.
//
// It owns the table of members as this node sees it, pings and what their answers tell, the
// addresses at which members are dialled, greetings, what was seen of the members' disks, and
// the check whether the node is of its callers' cluster. It neither leads nor proposes.
package peers
