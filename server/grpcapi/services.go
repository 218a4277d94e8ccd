package grpcapi

import (
	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/server/service"
)

// The services are the use cases themselves, and the streams beside them. Because of the
// Unsafe servers a method that is missing is an error of the compiler.

// idsServer is the service of ids.
type idsServer struct {
	idnodev1.UnsafeIdsServiceServer
	*service.Service
	// log and exchanges are for the calls of streams, which the server's own
	// interceptors do not see.
	log       *requestLog
	exchanges *exchanges
	startSpan StartSpan
}

// seriesServer is the service of series of document numbers.
type seriesServer struct {
	idnodev1.UnsafeSeriesServiceServer
	*service.Service
}

// workersServer is the service of workers that make Snowflake ids.
type workersServer struct {
	idnodev1.UnsafeWorkersServiceServer
	*service.Service
}

// clusterServer is the service of the cluster.
type clusterServer struct {
	idnodev1.UnsafeClusterServiceServer
	*service.Service
}

// adminServer is the service of backups and merges.
type adminServer struct {
	idnodev1.UnsafeAdminServiceServer
	*service.Service
}
