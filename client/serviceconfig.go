package client

// ServiceConfig is a gRPC service config for users of the generated stubs instead of this
// package:
//
//	grpc.WithDefaultServiceConfig(client.ServiceConfig)
//
// It retries calls that only read, if no node could answer. It retries no call that takes or
// changes something: gRPC repeats a call by its status code alone and cannot see whether it
// has a request id, without which a repetition may count twice.
const ServiceConfig = `{
	"methodConfig": [{
		"name": [
			{"service": "idnode.v1.IdsService", "method": "GetIdentity"},
			{"service": "idnode.v1.IdsService", "method": "ListIdentities"},
			{"service": "idnode.v1.IdsService", "method": "GetHiLo"},
			{"service": "idnode.v1.IdsService", "method": "WhoHolds"},
			{"service": "idnode.v1.IdsService", "method": "ListHiLo"},
			{"service": "idnode.v1.IdsService", "method": "ListReserves"},
			{"service": "idnode.v1.IdsService", "method": "ListClaims"},
			{"service": "idnode.v1.ClusterService", "method": "GetStatus"},
			{"service": "idnode.v1.ClusterService", "method": "ListMembers"},
			{"service": "idnode.v1.ClusterService", "method": "ListDatabases"},
			{"service": "idnode.v1.ClusterService", "method": "ListSettings"},
			{"service": "grpc.health.v1.Health", "method": "Check"}
		],
		"retryPolicy": {
			"maxAttempts": 4,
			"initialBackoff": "0.1s",
			"maxBackoff": "1s",
			"backoffMultiplier": 2,
			"retryableStatusCodes": ["UNAVAILABLE"]
		}
	}]
}`
