package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
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

// addBackup writes a backup into a directory, and then deletes what is older than the
// newest so many there.
func addBackup(ctx context.Context, s *clusterClient, p *progress, dir string, keep int, consistency idnodev1.Consistency) error {
	if keep < 1 {
		return usagef("--keep must be at least 1, not %d", keep)
	}
	if at, err := os.Stat(dir); err != nil {
		return usagef("with --keep the target is a directory: %v", err)
	} else if !at.IsDir() {
		return usagef("with --keep the target is a directory, and %s is none", dir)
	}
	draft, info, err := draftBackup(ctx, s, p, dir, draftName, consistency)
	if err != nil {
		return err
	}
	name := fmt.Sprintf(backupName, info.GetTime().AsTime().Format("20060102T150405Z"), info.GetLogIndex(), info.GetClusterId())
	path := filepath.Join(dir, name)
	if err := moveFile(draft, path); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	s.out.result(info, func(w io.Writer) { printBackup(w, path, info) })
	if err := deleteOlder(dir, name, info.GetClusterId(), keep); err != nil {
		return fmt.Errorf("%s is whole, but what is older than the newest %d backups cannot be deleted: %w", path, keep, err)
	}
	return nil
}

// deleteOlder deletes, of what is older than the added backup, all but the newest backups
// of its cluster. What is newer stays: other runs add to the directory too. A cluster that
// began again, as after a disaster, has another id and does not delete backups that it may
// have to be restored from. The time gives the order: the log index is low again once all
// nodes' disks were set back. Drafts of killed processes are deleted too.
func deleteOlder(dir, added, cluster string, keep int) error {
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
	self, _ := parse(added)
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
