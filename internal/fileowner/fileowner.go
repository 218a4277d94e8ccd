//go:build unix

// Package fileowner gives files that root made for another user's process to that user.
package fileowner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// KeepIn gives what this user made in a directory to the directory's owner: run as
// root, it would leave files that the node, under its own user, cannot open. What has
// several names is left alone, because one of them may be elsewhere.
func KeepIn(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	owner, err := statOf(dir)
	if err != nil || int(owner.Uid) == os.Geteuid() {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return KeepOf(path, dir)
	})
}

// KeepOf gives what this user made to the owner of another file or directory.
func KeepOf(path, other string) error {
	owner, err := statOf(other)
	if err != nil || int(owner.Uid) == os.Geteuid() {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	now, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(now.Uid) != os.Geteuid() || !info.IsDir() && (!info.Mode().IsRegular() || now.Nlink > 1) {
		return nil
	}
	return os.Lchown(path, int(owner.Uid), int(owner.Gid))
}

func statOf(path string) (*syscall.Stat_t, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return stat, nil
}
