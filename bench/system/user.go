package system

import (
	"fmt"
	"os"
	"os/exec"
	osuser "os/user"
	"strconv"
	"syscall"
)

// user is who a program runs as.
type user struct {
	// attr is nil for the user of this process.
	attr *syscall.SysProcAttr
}

// unprivileged is this user, or one that may do less if this one is root, as
// whom PostgreSQL refuses to run.
func unprivileged() (user, error) {
	if os.Getuid() != 0 {
		return user{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := osuser.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return user{}, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return user{}, err
		}
		return user{&syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}}, nil
	}
	return user{}, fmt.Errorf("%w: PostgreSQL does not run as root, and there is no other user", ErrMissing)
}

// command returns a command that runs as the user, in a folder.
func (u user) command(dir, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	if u.attr != nil {
		attr := *u.attr
		cmd.SysProcAttr = &attr
	}
	return cmd
}
