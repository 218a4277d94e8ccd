package transport

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/idnode/idnode/cluster/witness"
	"github.com/idnode/idnode/internal/nodeid"
)

const (
	// version is the version of the handshake. A node refuses any other.
	version = 1
	// magic and the version are the first bytes of greeting and answer in every version.
	magic   = "idnraft"
	opening = magic + string(rune(version))

	// maxOtherGreeting bounds how much of another version's greeting is read, in bytes.
	maxOtherGreeting = 4096
)

var errNotOurs = errors.New("not an idnode Raft port")

// versionError is the handshake version of the other side.
type versionError byte

func (v versionError) Error() string {
	return fmt.Sprintf("it speaks version %d of the handshake, this program %d", byte(v), version)
}

// Status is the answer to a greeting. Its values are on the wire and never renumbered.
type Status uint8

const (
	OK Status = iota
	WrongCluster
	WrongTarget
	// NotMember means that the node dialled does not know the dialler, or not yet.
	NotMember
	Removed
	WrongCertificate
	// Impostor means that another process answers at the dialler's address under
	// the dialler's id.
	Impostor
	// SetBack means that the dialler's disk has lost data that members have seen on it.
	SetBack
	// OtherVersion means that the node dialled does not know the greeting's purpose, or uses
	// another version of the handshake, which it sent instead of a status.
	OtherVersion
)

var statusTexts = [...]string{
	OK:               "ok",
	WrongCluster:     "wrong cluster",
	WrongTarget:      "another node is at this address",
	NotMember:        "not a member",
	Removed:          "removed from the cluster",
	WrongCertificate: "the certificate names another node",
	Impostor:         "another process has the same id",
	SetBack:          "the data directory was set back to an older copy",
	OtherVersion:     "another version of the handshake",
}

func (s Status) String() string {
	if int(s) < len(statusTexts) {
		return statusTexts[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// clusterID is a cluster's id, as long as a node's id.
type clusterID [nodeid.Size]byte

// newProcess returns a random number, which distinguishes the processes of one id.
func newProcess() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // rand.Read never fails.
	return binary.BigEndian.Uint64(b[:])
}

type purpose uint8

const (
	// forRaft opens a connection for Raft's messages.
	forRaft purpose = iota
	// forProbe asks for the process number and disk state only; the connection is closed
	// after the answer.
	forProbe
	// forAcceptance asks to be accepted after a start; the connection is closed after the
	// answer.
	forAcceptance
	// forCalls opens a connection for the calls between members: see Transport.Calls.
	forCalls
)

// lasts reports whether the connection is used after the answer.
func (p purpose) lasts() bool { return p == forRaft || p == forCalls }

// greeting is the dialler's first message. Its fields, and those of witness.DiskState, are sent
// in their order here. After them comes an extension, as after those of the answer: its length in two
// bytes, and what later programs add. This one sends none, and skips one that it gets.
type greeting struct {
	Purpose         purpose
	Cluster         clusterID
	Dialler, Target nodeid.ID
	Process         uint64
	Disk            witness.DiskState
}

// readGreeting reads exactly one greeting, and no further byte.
func readGreeting(r io.Reader) (g greeting, err error) {
	err = readFrame(r, &g)
	return g, err
}

type greetingReply struct {
	Status  Status
	ID      nodeid.ID
	Process uint64
	// Disk is empty unless Status is OK.
	Disk witness.DiskState
}

func readReply(r io.Reader) (a greetingReply, err error) {
	err = readFrame(r, &a)
	return a, err
}

func encode(message any) []byte { return append(encodeFields(message), 0, 0) }

func encodeFields(message any) []byte {
	b, _ := binary.Append([]byte(opening), binary.BigEndian, message) // Fails for other types alone.
	return b
}

// readFrame reads the bytes of one message into it. Other protocols and versions are refused by
// their first eight bytes.
func readFrame(r io.Reader, message any) error {
	b := make([]byte, len(opening)+binary.Size(message))
	if _, err := io.ReadFull(r, b[:len(opening)]); err != nil {
		return err
	}
	switch {
	case string(b[:len(magic)]) != magic:
		return errNotOurs
	case b[len(magic)] != version:
		return versionError(b[len(magic)])
	}
	if _, err := io.ReadFull(r, b[len(opening):]); err != nil {
		return err
	}
	if _, err := binary.Decode(b[len(opening):], binary.BigEndian, message); err != nil || !bytes.Equal(encodeFields(message), b) {
		return errNotOurs // A flag is neither 0 nor 1.
	}
	return skipExtension(r)
}

func skipExtension(r io.Reader) error {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, r, int64(binary.BigEndian.Uint16(length[:])))
	return err
}
