package transport

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

const (
	idBytes       = 16
	instanceBytes = 8
	// magic ends with the version of the handshake.
	magic = "idnraft\x01"

	greetingBytes = len(magic) + 1 + 3*idBytes + instanceBytes
	answerBytes   = len(magic) + 1 + idBytes + instanceBytes
)

// errNotOurs means that the other side does not speak this handshake.
var errNotOurs = errors.New("not an idnode Raft port, or another version of it")

// Status is the answer to a greeting. Its values go over the network: they are
// never renumbered.
type Status uint8

const (
	// OK means that messages may follow.
	OK Status = iota
	// WrongCluster means that the node dialled is of another cluster.
	WrongCluster
	// WrongTarget means that the node dialled is not the one that was wanted.
	WrongTarget
	// NotMember means that the node dialled does not know the dialler. It may
	// just not have heard of it yet.
	NotMember
	// Removed means that the dialler was removed from the cluster, for ever.
	Removed
	// WrongCertificate means that the dialler's certificate names another tag.
	WrongCertificate
	// Impostor means that another process answers at the dialler's address under
	// the dialler's id.
	Impostor
)

var statusTexts = [...]string{
	OK:               "ok",
	WrongCluster:     "wrong cluster",
	WrongTarget:      "another node is at this address",
	NotMember:        "not a member",
	Removed:          "removed from the cluster",
	WrongCertificate: "the certificate names another node",
	Impostor:         "another process has the same id",
}

// String returns the status in words.
func (s Status) String() string {
	if int(s) < len(statusTexts) {
		return statusTexts[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

type id [idBytes]byte

// String returns the id as Raft writes it.
func (i id) String() string { return hex.EncodeToString(i[:]) }

func parseID(s string) (out id, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != idBytes {
		return out, fmt.Errorf("transport: %q is no Raft id (32 hexadecimal digits)", s)
	}
	return id(b), nil
}

// instance is drawn at random by each process, to tell two of one id apart.
type instance [instanceBytes]byte

func newInstance() (i instance) {
	_, _ = rand.Read(i[:]) // It never fails.
	return i
}

type purpose uint8

const (
	// forRaft opens a connection for Raft's messages.
	forRaft purpose = iota
	// forProbe only asks who is there; the connection is closed after the answer.
	forProbe
)

// greeting is what a dialler says first.
type greeting struct {
	purpose                  purpose
	cluster, dialler, target id
	instance                 instance
}

func (g greeting) encode() []byte {
	b := append([]byte(magic), byte(g.purpose))
	b = append(b, g.cluster[:]...)
	b = append(b, g.dialler[:]...)
	b = append(b, g.target[:]...)
	return append(b, g.instance[:]...)
}

// readGreeting reads exactly one greeting: no byte of what follows it.
func readGreeting(r io.Reader) (g greeting, err error) {
	b, err := readFrame(r, greetingBytes)
	if err != nil {
		return g, err
	}
	g.purpose = purpose(b[0])
	if g.purpose > forProbe {
		return g, errNotOurs
	}
	b = b[1:]
	b = b[copy(g.cluster[:], b):]
	b = b[copy(g.dialler[:], b):]
	b = b[copy(g.target[:], b):]
	copy(g.instance[:], b)
	return g, nil
}

// answer is what the node dialled says.
type answer struct {
	status   Status
	id       id
	instance instance
}

func (a answer) encode() []byte {
	b := append([]byte(magic), byte(a.status))
	b = append(b, a.id[:]...)
	return append(b, a.instance[:]...)
}

func readAnswer(r io.Reader) (a answer, err error) {
	b, err := readFrame(r, answerBytes)
	if err != nil {
		return a, err
	}
	a.status = Status(b[0])
	b = b[1:]
	b = b[copy(a.id[:], b):]
	copy(a.instance[:], b)
	return a, nil
}

// readFrame reads a frame of the given length and returns what follows its
// magic. A stranger's bytes are refused as soon as they differ from the magic.
func readFrame(r io.Reader, length int) ([]byte, error) {
	b := make([]byte, length)
	if _, err := io.ReadFull(r, b[:len(magic)]); err != nil {
		return nil, err
	}
	if !bytes.Equal(b[:len(magic)], []byte(magic)) {
		return nil, errNotOurs
	}
	_, err := io.ReadFull(r, b[len(magic):])
	return b[len(magic):], err
}
