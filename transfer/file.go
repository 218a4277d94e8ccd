package transfer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/fileowner"
	"github.com/idnode/idnode/internal/syncdir"
)

// Write fills a new file. What it wrote before an error does not count.
type Write func(file *os.File) error

// SaveBackup writes a backup beside path, checks what is on the disk, and then moves it
// to path, where it replaces what is there.
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

// Draft writes a new file in dir, which its owner alone can read, and returns its path.
// An empty dir is the system's for temporary files.
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
		_ = os.Remove(file.Name()) // What went wrong before is told.
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

// publish moves a draft to path. One that replaces another file gets its mode; and its
// owner, where this user may: a backup that root renews stays readable for its readers.
func publish(draft, path string) error {
	var err error
	if replaced, missing := os.Stat(path); missing == nil {
		err = errors.Join(os.Chmod(draft, replaced.Mode().Perm()), fileowner.KeepOf(draft, path))
	}
	if err == nil {
		err = move(draft, path)
	}
	if err != nil {
		_ = os.Remove(draft) // It is gone if it was moved.
	}
	return err
}

// move gives a file its name; both are durable when it returns.
func move(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncdir.Sync(filepath.Dir(to))
}
