package system

import (
	"context"
	"fmt"
)

// Members of clusters are processes of this same program, which its first
// argument makes one.
var members = map[string]func(ctx context.Context, args []string) error{
	"etcd-member": etcdMember,
	"raft-member": raftMember,
}

// Member runs the process of a member if args ask for one.
func Member(ctx context.Context, args []string) (asked bool, err error) {
	if len(args) == 0 {
		return false, nil
	}
	run, asked := members[args[0]]
	if !asked {
		return false, nil
	}
	return true, run(ctx, args[1:])
}

// sayReady tells the parent process, which reads it with awaitReady.
func sayReady() error {
	_, err := fmt.Println(readyLine)
	return err
}
