// Package wire reads and writes the fields of protobuf messages without the generated code,
// which copies and allocates: for log entries, operations and results, and for the calls of
// a stream.
//
// It owns the form of a field, and knows no message: field numbers are with those who own
// the messages. A [Reader] is strict, for what this program wrote itself. [Fields] takes
// what any protobuf library may have written.
package wire
