package boltetag

import (
	"bytes"
	"encoding/binary"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/internal/crc32c"
)

// The file holds two buckets. Every key of meta is always there.
var (
	metaBucket     = []byte("meta")
	databaseBucket = []byte("databases")

	nodeKey  = []byte("node")  // the node's Raft id
	cleanKey = []byte("clean") // uint64: 1 after a clean stop
	startKey = []byte("start") // uint64: the newest start number
	countKey = []byte("count") // uint64: how many databases there are
)

const sumSize = 4

// checksum covers the place of a value as well as the value, so that a value
// that turns up under another key does not pass.
func checksum(bucket, key, payload []byte) uint32 {
	var lengths [2]byte
	// Two names together are shorter than a page, and the lengths need only
	// tell the parts from each other.
	lengths[0], lengths[1] = byte(len(bucket)), byte(len(key))
	return crc32c.Sum(lengths[:], bucket, key, payload)
}

func put(tx *bolt.Tx, bucket, key, payload []byte) error {
	value := make([]byte, 0, len(payload)+sumSize)
	value = append(value, payload...)
	value = binary.BigEndian.AppendUint32(value, checksum(bucket, key, payload))
	return tx.Bucket(bucket).Put(key, value)
}

func putNumber(tx *bolt.Tx, bucket, key []byte, number uint64) error {
	return put(tx, bucket, key, binary.BigEndian.AppendUint64(nil, number))
}

// open checks a stored value and returns its payload, which is valid as long as
// the transaction.
func open(bucket, key, value []byte) ([]byte, error) {
	if len(value) < sumSize {
		return nil, fmt.Errorf("%w: no value at %s/%q", etag.ErrCorrupt, bucket, key)
	}
	payload, sum := value[:len(value)-sumSize], value[len(value)-sumSize:]
	if checksum(bucket, key, payload) != binary.BigEndian.Uint32(sum) {
		return nil, fmt.Errorf("%w: checksum of %s/%q", etag.ErrCorrupt, bucket, key)
	}
	return payload, nil
}

func openNumber(bucket, key, value []byte) (uint64, error) {
	payload, err := open(bucket, key, value)
	if err != nil {
		return 0, err
	}
	if len(payload) != 8 {
		return 0, fmt.Errorf("%w: length of %s/%q", etag.ErrCorrupt, bucket, key)
	}
	return binary.BigEndian.Uint64(payload), nil
}

func initialise(tx *bolt.Tx, node []byte) error {
	for _, bucket := range [][]byte{metaBucket, databaseBucket} {
		if _, err := tx.CreateBucket(bucket); err != nil {
			return err
		}
	}
	if err := put(tx, metaBucket, nodeKey, node); err != nil {
		return err
	}
	return putMeta(tx, map[string]uint64{
		string(cleanKey): 0, string(startKey): 0, string(countKey): 0,
	})
}

func putMeta(tx *bolt.Tx, numbers map[string]uint64) error {
	for key, number := range numbers {
		if err := putNumber(tx, metaBucket, []byte(key), number); err != nil {
			return err
		}
	}
	return nil
}

func getMeta(tx *bolt.Tx, key []byte) (uint64, error) {
	return openNumber(metaBucket, key, tx.Bucket(metaBucket).Get(key))
}

func read(tx *bolt.Tx, node []byte) (etag.Stored, error) {
	state := etag.Stored{Databases: make(map[string]uint64)}
	if tx.Bucket(metaBucket) == nil || tx.Bucket(databaseBucket) == nil {
		return state, fmt.Errorf("%w: the file is empty", etag.ErrCorrupt)
	}
	count, err := readMeta(tx, node, &state)
	if err != nil {
		return state, err
	}
	err = tx.Bucket(databaseBucket).ForEach(func(key, value []byte) error {
		number, err := openNumber(databaseBucket, key, value)
		state.Databases[string(key)] = number
		return err
	})
	if err == nil && uint64(len(state.Databases)) != count {
		err = fmt.Errorf("%w: %d databases where %d were stored", etag.ErrCorrupt, len(state.Databases), count)
	}
	return state, err
}

func readMeta(tx *bolt.Tx, node []byte, state *etag.Stored) (count uint64, err error) {
	owner, err := open(metaBucket, nodeKey, tx.Bucket(metaBucket).Get(nodeKey))
	if err != nil {
		return 0, err
	}
	if !bytes.Equal(owner, node) {
		return 0, fmt.Errorf("%w: it is of %x, this is %x", ErrOtherNode, owner, node)
	}
	clean, err := getMeta(tx, cleanKey)
	if err != nil {
		return 0, err
	}
	state.Clean = clean == 1
	if state.Start, err = getMeta(tx, startKey); err != nil {
		return 0, err
	}
	return getMeta(tx, countKey)
}

func reserve(tx *bolt.Tx, r etag.Reservation) error {
	numbers := map[string]uint64{string(cleanKey): 0}
	if r.Start > 0 {
		numbers[string(startKey)] = r.Start
	}
	if err := putDatabases(tx, r.Limits); err != nil {
		return err
	}
	return putMeta(tx, numbers)
}

func stop(tx *bolt.Tx, last map[string]uint64) error {
	if err := putDatabases(tx, last); err != nil {
		return err
	}
	return putMeta(tx, map[string]uint64{string(cleanKey): 1})
}

func putDatabases(tx *bolt.Tx, values map[string]uint64) error {
	count, err := getMeta(tx, countKey)
	if err != nil {
		return err
	}
	before := count
	for name, value := range values {
		if tx.Bucket(databaseBucket).Get([]byte(name)) == nil {
			count++
		}
		if err := putNumber(tx, databaseBucket, []byte(name), value); err != nil {
			return err
		}
	}
	if count == before {
		return nil
	}
	return putMeta(tx, map[string]uint64{string(countKey): count})
}
