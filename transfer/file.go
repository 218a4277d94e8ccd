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
	"github.com/idnode/idnode/internal/fileowner"
	"github.com/idnode/idnode/internal/syncdir"
)

// Write fills a new file. After an error the file is discarded.
type Write func(file *os.File) error

// SaveBackup writes a backup beside path, checks the file on disk, and moves it to path.
func SaveBackup(path string, write Write) (*idnodev1.BackupInfo, error) {
	draft, info, err := draftBackup(filepath.Dir(path), filepath.Base(path), write)
	if err != nil {
		return nil, err
	}
	return info, publish(draft, path)
}

// WriteFile writes a file beside path, and moves it to path once it is durable.
func WriteFile(path string, write Write) error {
	draft, err := Draft(filepath.Dir(path), filepath.Base(path), write)
	if err != nil {
		return err
	}
	return publish(draft, path)
}

// Draft writes a new file in dir, for its owner alone, and returns its path; an empty dir is the system's temporary one.
func Draft(dir, name string, write Write) (path string, err error) {
	file, err := os.CreateTemp(dir, name+".part-*")
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			at.Path = filepath.Join(dir, name) // The other name is unknown.
		}
		return "", err
	}
	if err := errors.Join(write(file), file.Sync(), file.Close()); err != nil {
		_ = os.Remove(file.Name()) // The error before it is returned.
		return "", err
	}
	return file.Name(), nil
}

// draftBackup is Draft for a backup, which it reads back.
func draftBackup(dir, name string, write Write) (path string, info *idnodev1.BackupInfo, err error) {
	if path, err = Draft(dir, name, write); err != nil {
		return "", nil, err
	}
	b, err := Open(path)
	if err != nil {
		_ = os.Remove(path)
		return "", nil, err
	}
	return path, b.Info, nil
}

// publish moves a draft to path. If it replaces a file, it keeps that file's mode, and its owner
// where this user may set it: a backup that root renews stays readable for its readers.
func publish(draft, path string) error {
	var err error
	if replaced, missing := os.Stat(path); missing == nil {
		err = errors.Join(os.Chmod(draft, replaced.Mode().Perm()), fileowner.KeepOf(draft, path))
	}
	if err == nil {
		err = os.Rename(draft, path)
	}
	if err == nil {
		err = syncdir.Sync(filepath.Dir(path))
	}
	if err != nil {
		_ = os.Remove(draft) // It is gone if it was moved.
	}
	return err
}

const (
	// backupName is how backups in a directory are named: time, log index, cluster.
	backupName = "%s-%d-%s.backup"
	// draftName is the name of a backup until it is complete.
	draftName = "idnode"
	// staleDraft is the age at which no process writes a draft any more: the longest
	// backups take minutes.
	staleDraft = 24 * time.Hour
)

// AddBackup writes a backup into a directory, under a name made of its time, log index and cluster.
func AddBackup(dir string, write Write) (path string, info *idnodev1.BackupInfo, err error) {
	draft, info, err := draftBackup(dir, draftName, write)
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir,
		fmt.Sprintf(backupName, info.GetTime().AsTime().Format("20060102T150405Z"), info.GetLogIndex(), info.GetClusterId()))
	return path, info, publish(draft, path)
}

// DeleteOlder deletes all but the newest keep backups of a cluster, among those older than a backup
// that AddBackup added. Newer backups stay: other runs add to the directory too. A cluster that was
// formed anew after a disaster has another id, and does not delete backups that it may have to be
// restored from. The order is that of time: the log index restarts low once all nodes' disks were set
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
		index, _ := strconv.ParseUint(m[2], 10, 64) // An index beyond uint64 counts as the newest.
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
