package transfer

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
)

const (
	// backupName is how backups in a directory are named: time, log index, cluster.
	backupName = "%s-%d-%s.backup"
	// draftName is what a backup is named until it is whole.
	draftName = "idnode"
	// staleDraft is the age at which no process writes a draft any more: the longest
	// backups take minutes.
	staleDraft = 24 * time.Hour
)

// AddBackup writes a backup into a directory, under a name made of its time, its log
// index and its cluster's id.
func AddBackup(dir string, write Write) (path string, info *idnodev1.BackupInfo, err error) {
	draft, info, err := draftBackup(dir, draftName, write)
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir,
		fmt.Sprintf(backupName, info.GetTime().AsTime().Format("20060102T150405Z"), info.GetLogIndex(), info.GetClusterId()))
	if err := move(draft, path); err != nil {
		return "", nil, errors.Join(err, remove(draft))
	}
	return path, info, nil
}

// DeleteOlder deletes, of what is older than a backup that AddBackup added, all but the newest keep
// backups of its cluster. What is newer stays: other runs add to the directory too. A cluster that
// began again, as after a disaster, has another id and does not delete backups that it may have to be
// restored from. The time gives the order: the log index is low again once all nodes' disks were set
// back. Drafts of killed processes are deleted too.
func DeleteOlder(added, cluster string, keep int) error {
	dir := filepath.Dir(added)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	type backup struct {
		name, time string
		index      uint64
	}
	form := regexp.MustCompile(`^(\d{8}T\d{6}Z)-(\d+)-` + cluster + `\.backup$`)
	parse := func(name string) (backup, bool) {
		m := form.FindStringSubmatch(name)
		if m == nil {
			return backup{}, false
		}
		index, _ := strconv.ParseUint(m[2], 10, 64) // One beyond counts as the newest.
		return backup{name, m[1], index}, true
	}
	older := func(a, b backup) int { return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(b.index, a.index)) }
	var all []backup
	var errs []error
	for _, e := range entries {
		if b, ok := parse(e.Name()); ok && e.Type().IsRegular() {
			all = append(all, b)
		}
		errs = append(errs, deleteStaleDraft(dir, e))
	}
	slices.SortFunc(all, older)
	self, _ := parse(filepath.Base(added))
	for _, b := range all[min(keep, len(all)):] {
		if older(self, b) < 0 {
			errs = append(errs, remove(filepath.Join(dir, b.name)))
		}
	}
	return errors.Join(errs...)
}

// remove deletes a file, if another run has not.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func deleteStaleDraft(dir string, e fs.DirEntry) error {
	if draft, _ := filepath.Match(draftName+".part-*", e.Name()); !draft || !e.Type().IsRegular() {
		return nil
	}
	info, err := e.Info()
	if err != nil || time.Since(info.ModTime()) < staleDraft {
		return nil // It is gone, or being written.
	}
	return remove(filepath.Join(dir, e.Name()))
}
