// Package tracing lets operators follow a call through the cluster: from the server's port into its
// group, and to the log entry, on any node.
//
// It owns the names of spans and what is in them, and it alone knows the OpenTelemetry SDK. Traces
// go to a collector as the usual variables of the environment (OTEL_…) say. Without them all
// methods of a nil *Tracing return what they are given, so such a node runs the code that it would
// run without this package.
package tracing
