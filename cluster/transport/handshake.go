package transport

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/idnode/idnode/cluster/witness"
	"github.com/idnode/idnode/internal/nodeid"
)

const (
	instanceBytes  = 8
	diskStateBytes = 1 + 6*8
	// version is the version of the handshake. A node refuses any other.
	version = 1
	// magic and the version are the first bytes of greeting and answer in every version.
	magic   = "idnraft"
	opening = magic + string(rune(version))

	greetingBytes = len(opening) + 1 + 3*nodeid.Size + instanceBytes + diskStateBytes
	replyBytes    = len(opening) + 1 + nodeid.Size + instanceBytes + diskStateBytes
	// maxOtherGreeting bounds how much of another version's greeting is read, in bytes.
	maxOtherGreeting = 4096
)

// errNotOurs means that the other side does not speak this handshake.
var errNotOurs = errors.New("not an idnode Raft port")

// versionError is the handshake version of the other side.
type versionError byte

func (v versionError) Error() string {
	return fmt.Sprintf("it speaks version %d of the handshake, this program %d", byte(v), version)
}

// Status is the answer to a greeting. Its values are on the wire and never renumbered.
type Status uint8

const (
	// OK means that messages may follow.
	OK Status = iota
	// WrongCluster means that the node dialled is of another cluster.
	WrongCluster
	// WrongTarget means that the node dialled is not the wanted node.
	WrongTarget
	// NotMember means that the node dialled does not know the dialler, or not yet.
	NotMember
	// Removed means that the dialler was removed from the cluster.
	Removed
	// WrongCertificate means that the dialler's certificate names another tag.
	WrongCertificate
	// Impostor means that another process answers at the dialler's address under
	// the dialler's id.
	Impostor
	// SetBack means that the dialler's disk has lost data that members have seen on it.
	SetBack
	// OtherVersion means that the node dialled uses another version of the handshake, which
	// it sent instead of a status.
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

// instance is a random number that distinguishes the processes of one id.
type instance [instanceBytes]byte

func newInstance() (i instance) {
	_, _ = rand.Read(i[:]) // rand.Read never fails.
	return i
}

func instanceOf(number uint64) (i instance) {
	binary.BigEndian.PutUint64(i[:], number)
	return i
}

// number returns the instance as the Witness's process number.
func (i instance) number() uint64 { return binary.BigEndian.Uint64(i[:]) }

type purpose uint8

const (
	// forRaft opens a connection for Raft's messages.
	forRaft purpose = iota
	// forProbe asks for the node's instance and disk state only; the connection is closed
	// after the answer.
	forProbe
	// forAcceptance asks to be accepted after a start; the connection is closed after the
	// answer.
	forAcceptance
)

// greeting is the dialler's first message.
type greeting struct {
	purpose         purpose
	cluster         clusterID
	dialler, target nodeid.ID
	instance        instance
	disk            witness.DiskState
}

func (g greeting) encode() []byte {
	b := append([]byte(opening), byte(g.purpose))
	b = append(b, g.cluster[:]...)
	b = append(b, g.dialler[:]...)
	b = append(b, g.target[:]...)
	b = append(b, g.instance[:]...)
	return appendDiskState(b, g.disk)
}

// readGreeting reads exactly one greeting, and no further byte.
func readGreeting(r io.Reader) (g greeting, err error) {
	b, err := readFrame(r, greetingBytes)
	if err != nil {
		return g, err
	}
	g.purpose = purpose(b[0])
	if g.purpose > forAcceptance {
		return g, errNotOurs
	}
	b = b[1:]
	b = b[copy(g.cluster[:], b):]
	b = b[copy(g.dialler[:], b):]
	b = b[copy(g.target[:], b):]
	b = b[copy(g.instance[:], b):]
	g.disk, err = decodeDiskState(b)
	return g, err
}

// greetingReply is the answer of the node dialled.
type greetingReply struct {
	status   Status
	id       nodeid.ID
	instance instance
	// disk is empty unless status is OK.
	disk witness.DiskState
}

func (a greetingReply) encode() []byte {
	b := append([]byte(opening), byte(a.status))
	b = append(b, a.id[:]...)
	b = append(b, a.instance[:]...)
	return appendDiskState(b, a.disk)
}

func readReply(r io.Reader) (a greetingReply, err error) {
	b, err := readFrame(r, replyBytes)
	if err != nil {
		return a, err
	}
	a.status = Status(b[0])
	b = b[1:]
	b = b[copy(a.id[:], b):]
	b = b[copy(a.instance[:], b):]
	a.disk, err = decodeDiskState(b)
	return a, err
}

func appendDiskState(b []byte, p witness.DiskState) []byte {
	trusted := byte(0)
	if p.Trusted {
		trusted = 1
	}
	b = append(b, trusted)
	for _, n := range []uint64{p.Starts, p.Last, p.LastTerm, p.Term, p.Committed, uint64(p.Age)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func decodeDiskState(b []byte) (p witness.DiskState, err error) {
	if b[0] > 1 {
		return p, errNotOurs
	}
	p.Trusted = b[0] == 1
	var age uint64
	for i, n := range []*uint64{&p.Starts, &p.Last, &p.LastTerm, &p.Term, &p.Committed, &age} {
		*n = binary.BigEndian.Uint64(b[1+8*i:])
	}
	p.Age = time.Duration(age)
	return p, nil
}

// readFrame reads a frame of the given length, and returns the bytes after its magic and
// version. Other protocols and versions are refused by their first eight bytes.
func readFrame(r io.Reader, length int) ([]byte, error) {
	b := make([]byte, length)
	if _, err := io.ReadFull(r, b[:len(opening)]); err != nil {
		return nil, err
	}
	switch {
	case string(b[:len(magic)]) != magic:
		return nil, errNotOurs
	case b[len(magic)] != version:
		return nil, versionError(b[len(magic)])
	}
	_, err := io.ReadFull(r, b[len(opening):])
	return b[len(opening):], err
}
