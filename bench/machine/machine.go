// Package machine says on what machine a measurement was made, and how long its
// disk takes to make something durable.
package machine

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Machine is what a measurement was made on.
type Machine struct {
	CPU       string    `json:"cpu"`
	Cores     int       `json:"cores"`
	MemoryMiB int64     `json:"memory_mib"`
	OS        string    `json:"os"`
	Go        string    `json:"go"`
	Commit    string    `json:"commit"`
	Date      time.Time `json:"date"`
}

// Describe describes this machine, and the commit of the checkout in dir. What
// cannot be found out is "unknown", or 0.
func Describe(dir string) Machine {
	return Machine{
		CPU:       field("/proc/cpuinfo", "model name"),
		Cores:     runtime.NumCPU(),
		MemoryMiB: memory(),
		OS:        runtime.GOOS + "/" + runtime.GOARCH + ", kernel " + kernel(),
		Go:        runtime.Version(),
		Commit:    commit(dir),
		Date:      time.Now().UTC().Truncate(time.Minute),
	}
}

// field returns the value of the first line "name : value" of a file.
func field(file, name string) string {
	f, err := os.Open(file)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, found := strings.Cut(lines.Text(), ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func memory() int64 {
	kib, err := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return kib >> 10
}

func kernel() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// commit is the short name of the checkout's commit, and says so if there were
// changes on top of it.
func commit(dir string) string {
	out, err := exec.Command("git", "-C", dir, "describe", "--always", "--abbrev=10", "--exclude=*", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
