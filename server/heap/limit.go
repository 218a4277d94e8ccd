package heap

import (
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// limitPercent of a container's memory is the runtime's limit: the rest is for what the runtime
// does not count, such as the page cache of the files that are mapped, and for bursts.
const limitPercent = 90

// version1None is less than what version 1 says where there is no limit: the most that a whole
// number of pages can be.
const version1None = math.MaxInt64 / 2

// FollowLimit keeps the heap below the memory limit of the container, or of the service
// manager: near it the collector runs more often, in place of the kernel's ending the process.
// It leaves alone what an operator sets by GOMEMLIMIT.
func FollowLimit(log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if limit := cgroupLimit(os.DirFS("/")); limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit / 100 * limitPercent)
		log.Info("the heap follows the memory limit of this process's group", "limit", limit, "gomemlimit", limit/100*limitPercent)
	}
}

// cgroupLimit returns the memory limit of this process's control group in bytes, the least of
// its own and of the groups above it; math.MaxInt64 if there is none (cgroups(7), "memory.max" of
// version 2 and "memory.limit_in_bytes" of version 1).
func cgroupLimit(root fs.FS) int64 {
	limit := int64(math.MaxInt64)
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return limit
	}
	for line := range strings.Lines(string(groups)) {
		_, line, _ = strings.Cut(strings.TrimSpace(line), ":")
		switch controllers, group, _ := strings.Cut(line, ":"); controllers {
		case "":
			limit = min(limit, leastLimit(root, "sys/fs/cgroup", group, "memory.max"))
		case "memory":
			limit = min(limit, leastLimit(root, "sys/fs/cgroup/memory", group, "memory.limit_in_bytes"))
		}
	}
	return limit
}

// leastLimit returns the least limit on the way from a group up to where the hierarchy is
// mounted. In a container that is often the group itself, and the way there is not to be seen.
func leastLimit(root fs.FS, mount, group, file string) int64 {
	limit := int64(math.MaxInt64)
	for {
		text, err := fs.ReadFile(root, path.Join(mount, group, file))
		if n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bad == nil && n > 0 && n < version1None {
			limit = min(limit, n)
		}
		if group == "/" || group == "." || group == "" {
			return limit
		}
		group = path.Dir(group)
	}
}
