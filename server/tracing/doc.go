// Package tracing lets operators follow a call through the cluster: from the
// server's port into the group that it travelled in, and to the log entry that
// took the group, on any node.
//
// It owns the names of spans and what is in them, and it alone knows the
// OpenTelemetry SDK. Traces go to a collector over OTLP, as http/protobuf and as
// the usual variables of the environment (OTEL_…) say. Without them there is no Tracing at all: all
// methods of a nil *Tracing return what they are given, so a node that is not
// traced runs the code that it would run without this package.
package tracing
