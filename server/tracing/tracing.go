// Package tracing lets operators follow a call through the cluster: from the server's port into its
// group, and to the log entry, on any node.
//
// It owns the names of spans and what is in them, and it alone knows the OpenTelemetry SDK. Traces
// go to a collector as the usual variables of the environment (OTEL_…) say. Without them all
// methods of a nil *Tracing return what they are given, so such a node runs the code that it would
// run without this package.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const scope = "github.com/idnode/idnode"

// The variables that are decided on here. All others are read by the SDK: those of the collector,
// the sampler, the batches, and OTEL_RESOURCE_ATTRIBUTES.
const (
	envDisabled       = "OTEL_SDK_DISABLED"
	envExporter       = "OTEL_TRACES_EXPORTER"
	envEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
)

// Config is what the traces of a node say of it.
type Config struct {
	// Version is the program's version, Instance the node's tag, or its address.
	Version, Instance string
	// Getenv reads the environment, as os.Getenv does.
	Getenv func(string) string
	// Logger hears when traces cannot be sent.
	Logger *slog.Logger
}

// Tracing follows calls. It is safe for concurrent use. A nil *Tracing does nothing.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	carry    propagation.TraceContext
}

// Start returns nil if the environment does not ask for traces, and an error if
// it asks for what there is not. It does not wait for the collector.
func Start(ctx context.Context, cfg Config) (*Tracing, error) {
	on, err := wanted(cfg.Getenv)
	if err != nil || !on {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "idnode"), attribute.String("service.version", cfg.Version),
		attribute.String("service.instance.id", cfg.Instance),
	), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	if cfg.Logger != nil {
		// The SDK has one place for its errors: of several nodes in a process the newest hears them.
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { cfg.Logger.Warn("traces cannot be sent", "error", err) }))
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return &Tracing{provider: provider, tracer: provider.Tracer(scope)}, nil
}

func wanted(getenv func(string) string) (bool, error) {
	if strings.EqualFold(getenv(envDisabled), "true") {
		return false, nil
	}
	switch exporter := getenv(envExporter); exporter {
	case "none":
		return false, nil
	case "otlp":
	case "":
		if getenv(envEndpoint) == "" && getenv(envTracesEndpoint) == "" {
			return false, nil
		}
	default:
		return false, fmt.Errorf("tracing: %s is %q: there are only otlp and none", envExporter, exporter)
	}
	return true, checkProtocol(getenv)
}

// protocolHTTP is the protocol that OpenTelemetry's specification takes for the default.
const protocolHTTP = "http/protobuf"

// checkProtocol looks at the variable that decides: that for traces, if it is given.
func checkProtocol(getenv func(string) string) error {
	name := envTracesProtocol
	if getenv(name) == "" {
		name = envProtocol
	}
	if protocol := getenv(name); protocol != "" && protocol != protocolHTTP {
		return fmt.Errorf("tracing: %s is %q: there is only %s, to which collectors listen on port 4318", name, protocol, protocolHTTP)
	}
	return nil
}

// Shutdown sends what is left, until ctx ends. Nothing is followed after it.
func (t *Tracing) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}
