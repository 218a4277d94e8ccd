package heap

import (
	"math"
	"testing"
	"testing/fstest"
)

// TestCgroupLimit: the least limit counts, of either version, in a container and on a host.
func TestCgroupLimit(t *testing.T) {
	const none = math.MaxInt64
	for name, tc := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no groups":      {nil, none},
		"no limit":       {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, none},
		"no file":        {map[string]string{"proc/self/cgroup": "0::/\n"}, none},
		"container":      {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "134217728\n"}, 128 << 20},
		"the host's way": {map[string]string{"proc/self/cgroup": "0::/kubepods/pod1/c1\n", "sys/fs/cgroup/memory.max": "1000\n"}, 1000},
		"unit, own": {map[string]string{
			"proc/self/cgroup": "0::/system.slice/idnode.service\n",
			"sys/fs/cgroup/system.slice/idnode.service/memory.max": "500\n", "sys/fs/cgroup/system.slice/memory.max": "900\n",
		}, 500},
		"unit, of its slice": {map[string]string{
			"proc/self/cgroup": "0::/system.slice/idnode.service\n",
			"sys/fs/cgroup/system.slice/idnode.service/memory.max": "max\n", "sys/fs/cgroup/system.slice/memory.max": "900\n",
		}, 900},
		"version 1": {map[string]string{
			"proc/self/cgroup":                           "11:cpu,cpuacct:/x\n5:memory:/docker/c1\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "2000\n",
		}, 2000},
		"version 1, no limit": {map[string]string{
			"proc/self/cgroup":                           "5:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, none},
	} {
		files := fstest.MapFS{}
		for path, text := range tc.files {
			files[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := cgroupLimit(files); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}
