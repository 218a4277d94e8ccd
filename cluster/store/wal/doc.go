// Package wal is a log of Raft entries that costs one fdatasync per append.
//
// It owns one folder:
//
//   - segments, named by a number that counts up. A segment is filled with zeros and
//     synced before its first use, so that an append changes neither its size nor its
//     blocks, and the file system writes only the data. Its header has the log's position
//     when the segment began.
//   - at most one draft: the next segment, prepared in the background. Its file is there from
//     Open on, also where no inode is left.
//   - mark, two slots of one sector each that are written in turns, without a
//     sync, after each append is on disk: up to where the log was acknowledged.
//   - what a later program puts there, whose names begin with a dot. It stays.
//
// The log is a chain of records. A record has the first and the last index of the log
// after it, and the newest entries, if any: so truncations of either end and a restart
// behind a gap are records like any other. Each has a CRC-32C over its place, its content
// and the sum of the record before it, and each entry in it has one of its own, which is
// checked at every read. Segments without an entry of the log are removed in the
// background, oldest first, once the record that drops their entries is on disk, and the
// name of the oldest segment that stays.
//
// # Beginning a segment
//
// An append that does not fit into the newest segment writes header and record into the
// draft, syncs it, and gives it its name. It does not wait for the name: after a loss of
// power, a draft whose header continues the log is part of it. A draft without a header
// was never begun, and is filled anew. In the background the name, then the mark, become
// durable, and the next draft is made after that.
//
// # Torn or damaged
//
// A write that a crash interrupted was never acknowledged and may be truncated. A damaged
// record may have been acknowledged: dropping it could take back a commit, so Open
// returns ErrCorrupt. They are distinguished like this:
//
//   - Anything bad or missing below the mark is damage. The mark survives a killed
//     process; a loss of power may set it back.
//   - Above the mark, a bad record with a good one behind it is damage: a record
//     is written only when the one before it is on disk.
//   - Above the mark, a bad record in the newest segment with no good one behind
//     it is a torn write. It is overwritten with zeros.
//   - A mark, a header or an older segment that is not as written is damage, as are a
//     missing segment, one of another size, and a segment of another log. Segments below
//     a gap are not damage, if the log needs none of their entries.
//   - A read error of the system is not damage: the content was not seen.
//
// Records above the mark are written and synced once more before they are used: a failed
// sync leaves pages that look clean and are not on disk.
//
// # What is not detected
//
// A loss of power that sets back the mark (it does not survive in the system's memory)
// together with damage to the very last record, or to all from one record above the mark
// to the end: that looks like a torn write, and they are cut off. Without a loss of power,
// or with a good record behind the damage, this does not happen. If the loss of power also
// sets back the name of the newest segment, damage to its header makes it look like a draft
// that was never begun. The mark is also synced soon after a segment begins, before segments
// are removed, and when the log is closed. Nor does the log detect that the whole folder,
// mark included, was replaced by an older copy of itself: for that, its user keeps its
// Position elsewhere.
//
// # What is assumed of the disk
//
// A sync that returns nil has made everything written before it durable. A write of at
// most 512 bytes within a sector happens as a whole or not at all. An overwrite with the
// same bytes is harmless.
//
// The package does not lock its folder, and does not watch for slow writes: both
// are the caller's.
package wal
