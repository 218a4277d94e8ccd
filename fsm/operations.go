package fsm

import (
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/fsm/op"
)

// operation describes a kind of operations: the needed right, and the handler.
type operation struct {
	// need is the right that a caller needs; 0 for operations that nodes propose by themselves. needOf
	// has more rights.
	need rights.Right
	// inDatabase means that the operation is about names of a database.
	inDatabase bool
	run        handler
}

// handler runs an operation, appending its answer to dst. A handler that refuses leaves the state as
// it is, except that it advances a series' clock, or frees a pool's ended leases and settles its floor.
// Its dst is ignored.
type handler func(c *contents, dst []byte, now moment, o op.Operation) ([]byte, *refusal)

// operations are by kind.
var operations = [...]operation{
	op.KindIdentityNext:   {rights.Generate, true, (*contents).identityNext},
	op.KindIdentitySeed:   inDatabase(rights.Seed, (*contents).identitySeed),
	op.KindIdentityDelete: inDatabase(rights.Delete, (*contents).identityDelete),
	op.KindHiLoNext:       inDatabase(rights.Ranges, (*contents).hiloNext),
	op.KindHiLoReturn:     inDatabase(rights.Ranges, (*contents).hiloReturn),
	op.KindHiLoSet:        inDatabase(rights.Seed, (*contents).hiloSet),
	op.KindClaim:          inDatabase(rights.Claims, (*contents).claim),
	op.KindRelease:        inDatabase(rights.Claims, (*contents).release),
	op.KindDatabaseDelete: inDatabase(rights.Cluster, (*contents).databaseDelete),
	op.KindMerge:          inDatabase(rights.Cluster, (*contents).merge),

	op.KindSeriesDefine:    inSeries(rights.Series, (*seriesCall).define),
	op.KindSeriesTake:      inSeries(rights.Number, (*seriesCall).take),
	op.KindSeriesEnd:       inSeries(rights.Series, (*seriesCall).end),
	op.KindSeriesClose:     inSeries(rights.Series, (*seriesCall).closeScope),
	op.KindSeriesResume:    inSeries(rights.Series, (*seriesCall).resume),
	op.KindSeriesImport:    inSeries(rights.Cluster, (*seriesCall).importRecord),
	op.KindSeriesReconcile: inSeries(rights.Series, (*seriesCall).reconcile),
	op.KindSeriesDelete:    inSeries(rights.Series, (*seriesCall).delete),
	op.KindSeriesAllot:     inSeries(rights.Series, (*seriesCall).allot),

	op.KindPoolDefine:    inDatabase(rights.Seed, (*contents).poolDefine),
	op.KindWorkerAcquire: inDatabase(rights.Ranges, (*contents).workerAcquire),
	op.KindWorkerRenew:   inDatabase(rights.Ranges, (*contents).workerRenew),
	op.KindWorkerRelease: inDatabase(rights.Ranges, (*contents).workerRelease),
	op.KindWorkerEvict:   inDatabase(rights.Delete, (*contents).workerEvict),

	op.KindBootstrap:       onCluster(0, (*contents).bootstrap),
	op.KindMemberAdd:       onCluster(0, (*contents).memberAdd),
	op.KindMemberAnnounce:  onCluster(0, (*contents).memberAnnounce),
	op.KindMemberPromote:   onCluster(0, (*contents).memberPromote),
	op.KindMemberRemove:    onCluster(rights.Cluster, (*contents).memberRemove),
	op.KindWatcherSet:      onCluster(rights.Cluster, (*contents).watcherSet),
	op.KindFormatRaise:     onCluster(0, (*contents).formatRaise),
	op.KindEtagRaise:       onCluster(0, (*contents).etagRaise),
	op.KindEtagCleanStop:   onCluster(0, (*contents).etagCleanStop),
	op.KindMergeCluster:    onCluster(rights.Cluster, (*contents).mergeCluster),
	op.KindSettingSet:      onCluster(rights.Cluster, (*contents).settingSet),
	op.KindRolesSet:        onCluster(rights.Cluster, (*contents).rolesSet),
	op.KindJoinTokenCreate: onCluster(rights.Cluster, (*contents).joinTokenCreate),
}

// handled reports whether the state has a handler for operations of a kind.
func handled(k op.Kind) bool { return int(k) < len(operations) && operations[k].run != nil }

// message is *M, a message of the log.
type message[M any] interface {
	*M
	proto.Message
}

// onCluster returns an operation on the cluster itself, with a payload of type M.
func onCluster[M any, P message[M]](
	need rights.Right, run func(c *contents, dst []byte, now moment, o op.Operation, payload P) ([]byte, *refusal),
) operation {
	return operation{need: need, run: func(c *contents, dst []byte, now moment, o op.Operation) ([]byte, *refusal) {
		payload := P(new(M))
		if err := o.DecodePayload(payload); err != nil {
			return dst, invalid("", "%v", err)
		}
		return run(c, dst, now, o, payload)
	}}
}

// inDatabase is onCluster for operations on names of a database.
func inDatabase[M any, P message[M]](
	need rights.Right, run func(c *contents, dst []byte, now moment, o op.Operation, payload P) ([]byte, *refusal),
) operation {
	known := onCluster(need, run)
	known.inDatabase = true
	return known
}

// inSeries is inDatabase for operations on series.
func inSeries[M any, P message[M]](need rights.Right, run func(*seriesCall, P) ([]byte, *refusal)) operation {
	return inDatabase(need, func(c *contents, dst []byte, now moment, o op.Operation, payload P) ([]byte, *refusal) {
		return run(&seriesCall{seriesStore: &c.series, database: o.Database, now: now.unixNano, floor: c.floor, dst: dst}, payload)
	})
}
