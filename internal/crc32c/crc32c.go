// Package crc32c has the one checksum of files: CRC-32C, by Castagnoli's polynomial, which
// processors compute in hardware (RFC 3720, section 12.1).
package crc32c

import "hash/crc32"

var table = crc32.MakeTable(crc32.Castagnoli)

// Sum returns the checksum of the parts one after another.
func Sum(parts ...[]byte) (sum uint32) {
	for _, p := range parts {
		sum = crc32.Update(sum, table, p)
	}
	return sum
}
