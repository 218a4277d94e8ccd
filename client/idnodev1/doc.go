// Package idnodev1 is idnode's public API as Go code: the messages, clients and
// servers that are generated from the proto files beside it.
package idnodev1
