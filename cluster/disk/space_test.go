package disk

import (
	"errors"
	"log/slog"
	"testing"
)

func TestSpace(t *testing.T) {
	enough := Room{Bytes: 100, AllBytes: 200, Files: lowFiles, AllFiles: 1000}
	room, err := enough, error(nil)
	s := NewSpace(func() (Room, error) { return room, err }, 50, slog.New(slog.DiscardHandler))
	for what, c := range map[string]struct {
		room Room
		full bool
	}{
		"both above the marks":       {room: enough},
		"bytes below":                {room: Room{Bytes: 49, Files: 1000, AllFiles: 1000}, full: true},
		"inodes below":               {room: Room{Bytes: 1 << 40, Files: lowFiles - 1, AllFiles: 1000}, full: true},
		"inodes without a limit":     {room: Room{Bytes: 50}},
		"no inode is left of a few":  {room: Room{Bytes: 50, AllFiles: 4}, full: true},
		"both are free to the brim":  {room: Room{Bytes: 200, Files: 1000, AllFiles: 1000}},
		"neither bytes nor an inode": {room: Room{AllFiles: 1000}, full: true},
	} {
		room = c.room
		if s.Check(); s.Full() != c.full || s.Below() != c.full || s.Room() != c.room {
			t.Errorf("%s: full %v, room %v", what, s.Full(), s.Room())
		}
	}
	room, err = Room{}, errors.New("not known")
	s.isBelow.Store(false)
	s.Check()
	if s.Full() {
		t.Error("full although nobody knows")
	}
	s.SetQuorumFull(true)
	if !s.Full() {
		t.Error("not full although a quorum of others is")
	}
}

func TestRoomOf(t *testing.T) {
	room, err := RoomOf(t.TempDir())
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil || room.Bytes == 0 || room.AllBytes < room.Bytes || room.AllFiles < room.Files {
		t.Errorf("%+v, %v", room, err)
	}
	if _, err := RoomOf("no such directory"); err == nil {
		t.Error("a directory that is not there has room")
	}
}
